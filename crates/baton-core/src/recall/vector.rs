//! Vectors of an embedding model, and the order of results that words and vectors give together.

use std::collections::HashMap;

/// Maximum number of dimensions.
const MAX_DIMENSION: usize = 16_384;
/// Constant of reciprocal rank fusion: the larger it is, the less the first places count.
const RANK_OFFSET: f64 = 60.0;

/// Direction of a text in the space of an embedding model, one signed byte for each dimension. A text that the model
/// rejects has a vector without dimensions, which is similar to nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vector(Vec<u8>);

/// A text as an embedding model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedding {
    /// Name of the model. Vectors of different models cannot be compared.
    pub model: String,
    pub vector: Vector,
}

impl Vector {
    /// Reduces the numbers of a model to bytes. Returns `None` if there are none or too many, or if one is not finite.
    pub fn from_numbers(numbers: &[f32]) -> Option<Self> {
        let is_valid =
            (1..=MAX_DIMENSION).contains(&numbers.len()) && numbers.iter().all(|one| one.is_finite());
        let largest = numbers.iter().fold(0.0_f32, |largest, one| largest.max(one.abs()));
        let byte = |one: &f32| {
            let share = if largest > 0.0 { one / largest } else { 0.0 };
            ((share * 127.0).round() as i8).cast_unsigned()
        };
        is_valid.then(|| Self(numbers.iter().map(byte).collect()))
    }

    /// Returns the bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn dimension(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the cosine of the angle to a stored vector, from -1 to 1; 0 if the two cannot be compared.
    pub fn similarity(&self, stored: &[u8]) -> f64 {
        if self.0.len() != stored.len() {
            return 0.0;
        }
        // At most 127² × 16,384, which an i32 holds.
        let (mut product, mut own, mut other) = (0_i32, 0_i32, 0_i32);
        for (left, right) in self.0.iter().zip(stored) {
            let (left, right) = (i32::from(left.cast_signed()), i32::from(right.cast_signed()));
            product += left * right;
            own += left * left;
            other += right * right;
        }
        let lengths = f64::from(own).sqrt() * f64::from(other).sqrt();
        if lengths > 0.0 { f64::from(product) / lengths } else { 0.0 }
    }
}

/// Joins two rankings, best first, by reciprocal rank: the first place of either counts 1, further places less.
pub(super) fn fuse(by_words: &[usize], by_vector: &[usize]) -> Vec<(usize, f64)> {
    let mut positions: HashMap<usize, usize> = HashMap::new();
    let mut fused: Vec<(usize, f64)> = Vec::with_capacity(by_words.len());
    for ranking in [by_words, by_vector] {
        for (place, index) in ranking.iter().enumerate() {
            let position = *positions.entry(*index).or_insert_with(|| {
                fused.push((*index, 0.0));
                fused.len() - 1
            });
            fused[position].1 += (RANK_OFFSET + 1.0) / (RANK_OFFSET + 1.0 + place as f64);
        }
    }
    // Stable, so that words decide between equal scores.
    fused.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    fused
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_numbers_are_refused() {
        for numbers in [vec![], vec![f32::NAN], vec![1.0, f32::INFINITY], vec![0.5; MAX_DIMENSION + 1]] {
            assert_eq!(Vector::from_numbers(&numbers), None);
        }
        let zero = Vector::from_numbers(&[0.0, 0.0]).unwrap();
        assert!(zero.similarity(zero.as_bytes()).abs() < 1e-9);
    }

    #[test]
    fn vectors_of_different_dimensions_are_not_similar() {
        let vector = Vector::from_numbers(&[1.0, 2.0]).unwrap();
        assert!(vector.similarity(&[1, 2, 3]).abs() < 1e-9);
        assert!(vector.similarity(&[]).abs() < 1e-9);
    }

    #[test]
    fn items_in_both_rankings_come_first() {
        let order = |words: &[usize], vector: &[usize]| -> Vec<usize> {
            fuse(words, vector).into_iter().map(|(index, _)| index).collect()
        };
        assert_eq!(order(&[1, 2, 3], &[]), [1, 2, 3]);
        assert_eq!(order(&[], &[5, 4]), [5, 4]);
        assert_eq!(order(&[1, 2, 3], &[3, 4]), [3, 1, 2, 4]);
        assert!((fuse(&[7], &[7])[0].1 - 2.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn quantized_vectors_keep_their_cosine_similarity(pairs in proptest::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 8..200)) {
            let (left, right): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
            let exact = dot(&left, &right) / (dot(&left, &left) * dot(&right, &right)).sqrt().max(1e-9);
            let (left, right) = (Vector::from_numbers(&left).unwrap(), Vector::from_numbers(&right).unwrap());
            prop_assert!((left.similarity(right.as_bytes()) - exact).abs() < 0.02);
        }
    }
}
