//! Builds the observation settings from the configuration: compressor, price, budget, lease and retention.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use baton_app::observation::{ModelTroubles, WorkerActivity};
use baton_app::{ChatRecall, ObservationSettings};
use baton_core::observation::SessionMaterial;
use baton_llm::{
    Anthropic, AnthropicConfig, ApiKey, CompressError, Compression, Compressor, Embedder, EndpointError,
    Offline, OpenAi, OpenAiConfig, Summarization,
};
use baton_observation::ToolUse;

use crate::config::{CompressorKind, Config};
use crate::transcript::read_closing;

/// Time that a search waits for the vector of its query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn settings(config: &Config) -> ObservationSettings {
    let offline: Arc<dyn Compressor> = Arc::new(Offline);
    ObservationSettings {
        compressor: compressor(config, &offline),
        offline,
        daily_token_budget: config.daily_token_budget,
        price: config.price(),
        read_closing: Some(Arc::new(read_closing)),
        lease: Duration::from_secs(config.worker_lease_seconds),
        max_attempts: config.worker_max_attempts,
        recall: ChatRecall { on_prompt: config.recall_on_prompt, before_edit: config.recall_before_edit },
        raw_retention: Duration::from_secs(config.raw_retention_days * 86_400),
        troubles: ModelTroubles::default(),
        embedder: embedder(config),
        embedding_troubles: ModelTroubles::default(),
        activity: WorkerActivity::default(),
    }
}

/// Returns the client of the embedding endpoint, if one is configured.
fn embedder(config: &Config) -> Option<Arc<Embedder>> {
    let (url, model) = (config.embedding_url.as_ref()?, config.embedding_model.as_ref()?);
    let mut endpoint = OpenAiConfig::new(url, model);
    endpoint.api_key = config.embedding_api_key.as_ref().map(|key| ApiKey::new(key.expose()));
    endpoint.ca_file.clone_from(&config.embedding_ca_file);
    Some(Arc::new(Embedder::new(endpoint, QUERY_TIMEOUT)))
}

fn compressor(config: &Config, offline: &Arc<dyn Compressor>) -> Arc<dyn Compressor> {
    let timeout = Duration::from_secs(config.compressor_timeout_seconds);
    let anthropic = |key: &str| {
        let mut endpoint = AnthropicConfig::new(ApiKey::new(key));
        endpoint.base_url.clone_from(&config.anthropic_base_url);
        endpoint.timeout = timeout;
        endpoint.ca_file.clone_from(&config.compressor_ca_file);
        if let Some(model) = &config.compressor_model {
            endpoint.model.clone_from(model);
        }
        Arc::new(Model::new("anthropic", endpoint.model.clone(), move || {
            Ok(Box::new(Anthropic::new(&endpoint)?))
        })) as Arc<dyn Compressor>
    };
    let key = config.anthropic_api_key.as_ref().map(|key| key.expose());
    match (config.compressor, key) {
        (CompressorKind::Offline, _) | (CompressorKind::Auto, None) => offline.clone(),
        (CompressorKind::Auto, Some(key)) => anthropic(key),
        (CompressorKind::Anthropic, key) => anthropic(key.unwrap_or_default()),
        (CompressorKind::OpenAi, _) => {
            let model = config.compressor_model.clone().unwrap_or_default();
            let mut endpoint = OpenAiConfig::new(&config.openai_base_url, &model);
            endpoint.api_key = config.openai_api_key.as_ref().map(|key| ApiKey::new(key.expose()));
            endpoint.timeout = timeout;
            endpoint.ca_file.clone_from(&config.compressor_ca_file);
            Arc::new(Model::new("openai", model, move || Ok(Box::new(OpenAi::new(&endpoint)?))))
        }
    }
}

type Connect = Box<dyn Fn() -> Result<Box<dyn Compressor>, EndpointError> + Send + Sync>;

/// A compressor with a model, connected on first use because most processes never use it.
struct Model {
    name: &'static str,
    model: String,
    connect: Connect,
    connected: OnceLock<Box<dyn Compressor>>,
}

impl Model {
    fn new(
        name: &'static str,
        model: String,
        connect: impl Fn() -> Result<Box<dyn Compressor>, EndpointError> + Send + Sync + 'static,
    ) -> Self {
        Self { name, model, connect: Box::new(connect), connected: OnceLock::new() }
    }

    fn connected(&self) -> Result<&dyn Compressor, CompressError> {
        if let Some(connected) = self.connected.get() {
            return Ok(connected.as_ref());
        }
        let made = (self.connect)().map_err(|error| CompressError::Outage {
            message: error.to_string(),
            retry_after: None,
            needs_attention: true,
            may_be_caused_by_item: false,
        })?;
        // If another thread was first, its client is used.
        Ok(self.connected.get_or_init(|| made).as_ref())
    }
}

impl Compressor for Model {
    fn name(&self) -> &'static str {
        self.name
    }

    fn model(&self) -> Option<&str> {
        Some(&self.model)
    }

    fn compress(&self, tool_use: &ToolUse) -> Result<Compression, CompressError> {
        self.connected()?.compress(tool_use)
    }

    fn summarize(&self, material: &SessionMaterial) -> Result<Summarization, CompressError> {
        self.connected()?.summarize(material)
    }
}
