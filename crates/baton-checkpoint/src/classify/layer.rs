//! The four layers of a context and their shares of a budget.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Importance of a value in a context. The most important layer is the smallest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
#[schemars(inline)]
pub enum Layer {
    /// Never shortened or omitted: goals, decisions, constraints.
    Critical,
    /// Shortened if space is limited: plans, reasoning, open points.
    Important,
    /// Shortened strongly: examples, notes, detailed analysis.
    Useful,
    /// Omitted first: times, ids, logs, raw output.
    Ephemeral,
}

impl Layer {
    /// All layers, most important first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::Important, Self::Useful, Self::Ephemeral];

    /// Returns the stored and wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Parses a name.
    pub fn from_wire(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// Percentage of a budget reserved for each layer, in the order of [`Layer::ALL`]; the sum is 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares([u8; 4]);

impl Shares {
    /// Creates shares from percentages if their sum is 100.
    pub fn new(percents: [u8; 4]) -> Option<Self> {
        (percents.into_iter().map(u32::from).sum::<u32>() == 100).then_some(Self(percents))
    }

    /// Returns the percentage of a layer.
    pub const fn percent(self, layer: Layer) -> u8 {
        self.0[layer as usize]
    }
}

impl Default for Shares {
    fn default() -> Self {
        Self([30, 40, 20, 10])
    }
}

/// Bytes of JSON in each layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub struct LayerBytes {
    /// Size of the CRITICAL values in bytes.
    pub critical: usize,
    /// Size of the IMPORTANT values in bytes.
    pub important: usize,
    /// Size of the USEFUL values in bytes.
    pub useful: usize,
    /// Size of the EPHEMERAL values in bytes.
    pub ephemeral: usize,
}

impl LayerBytes {
    pub(crate) const fn add(&mut self, layer: Layer, bytes: usize) {
        match layer {
            Layer::Critical => self.critical += bytes,
            Layer::Important => self.important += bytes,
            Layer::Useful => self.useful += bytes,
            Layer::Ephemeral => self.ephemeral += bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_name_of_every_layer() {
        for layer in Layer::ALL {
            assert_eq!(Layer::from_wire(layer.as_str()), Some(layer));
            assert_eq!(serde_json::to_value(layer).unwrap(), layer.as_str());
        }
        assert_eq!(Layer::from_wire("critical"), None);
    }

    #[test]
    fn shares_must_add_up_to_100() {
        assert_eq!(Shares::new([30, 40, 20, 10]), Some(Shares::default()));
        assert_eq!(Shares::new([100, 0, 0, 0]).map(|shares| shares.percent(Layer::Useful)), Some(0));
        assert_eq!(Shares::new([30, 40, 20, 11]), None);
        assert_eq!(Shares::new([255, 255, 255, 255]), None);
    }
}
