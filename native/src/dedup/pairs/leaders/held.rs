//! The members that a cell holds, and their comparisons with its newest member.

use super::Limits;
use crate::dedup::bags::jaccard::weighted_jaccard;
use crate::dedup::sign::agreement::matches;

/// A document with its signature and its weighted bag.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: String,
    pub signature: Vec<u8>,
    pub tokens: Vec<u64>,
    pub weights: Vec<f64>,
}

impl Member {
    pub fn bytes(&self) -> usize {
        self.name.len() + self.signature.len() + 16 * self.tokens.len()
    }
}

/// The comparison of the newest member with a held one, made once for all thresholds.
#[derive(Clone, Copy, Default)]
pub struct Comparison {
    /// The number of the member that was compared last.
    member: u64,
    pub agreeing: usize,
    similarity: Option<f64>,
}

/// The members that a cell holds, and their comparisons with the newest member.
pub struct Held {
    value_bits: usize,
    pub members: Vec<Member>,
    /// The signatures of all members, one after the other.
    signatures: Vec<u8>,
    comparisons: Vec<Comparison>,
    pub bytes: usize,
    /// The number of the newest member.
    pub newest: u64,
}

impl Held {
    pub fn new(value_bits: usize) -> Self {
        Self {
            value_bits,
            members: Vec::new(),
            signatures: Vec::new(),
            comparisons: Vec::new(),
            bytes: 0,
            newest: 0,
        }
    }

    /// The comparison of `member` with the held member `number`, with the number of agreeing values.
    pub fn comparison(&mut self, member: &Member, number: u32) -> &mut Comparison {
        let comparison = &mut self.comparisons[number as usize];
        if comparison.member != self.newest {
            let (begin, bytes) = (number as usize * member.signature.len(), member.signature.len());
            let signature = &self.signatures[begin..begin + bytes];
            *comparison = Comparison {
                member: self.newest,
                agreeing: matches(&member.signature, signature, self.value_bits),
                similarity: None,
            };
        }
        comparison
    }

    /// (agreeing values, similarity) of two members, if both reach their limits.
    pub fn similarity(&mut self, member: &Member, number: u32, limits: Limits) -> Option<(usize, f64)> {
        let Comparison {
            agreeing, similarity, ..
        } = *self.comparison(member, number);
        if agreeing < limits.min_matches {
            return None;
        }
        let similarity = similarity.unwrap_or_else(|| {
            let other = &self.members[number as usize];
            weighted_jaccard(&member.tokens, &member.weights, &other.tokens, &other.weights)
        });
        self.comparisons[number as usize].similarity = Some(similarity);
        (similarity >= limits.threshold).then_some((agreeing, similarity))
    }

    pub fn push(&mut self, member: Member) -> u32 {
        let number = self.members.len() as u32;
        self.bytes += member.bytes();
        self.signatures.extend_from_slice(&member.signature);
        self.members.push(member);
        self.comparisons.push(Comparison::default());
        number
    }
}
