//! What could not be known, counted: the one collector of diagnostics.
//!
//! A room that has to leave something out adds a caveat and goes on. Every view shows them; nothing
//! is dropped in silence. A caveat states a fact. What a person can do about it depends on the
//! program that shows it, and is worded there.

mod kind;
mod remedy;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use kind::{About, CaveatKind};
pub use remedy::Remedy;

use super::{Runtime, grouped};

/// How many distinct details of one kind are kept; beyond it they are only counted.
const DETAILS_KEPT: usize = 256;
/// How many details a message names.
const DETAILS_NAMED: usize = 3;

/// One kind of thing that could not be known, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caveat {
    /// What kind.
    pub kind: CaveatKind,
    /// How many: samples, records or files, as the kind says.
    pub count: u64,
    /// What it was in particular, in order of appearance, each with its count.
    details: Vec<(Detail, u64)>,
    /// Whether there were more details than are kept.
    is_cut: bool,
    /// The runtimes whose code it is about.
    runtimes: BTreeSet<Runtime>,
}

/// What it was in particular that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A file, a process, a number and others, in words.
    Text(String),
    /// The same of a size that cannot be larger.
    Largest(String),
    /// Code that is in no file, as that of a JIT compiler, where others have a file.
    NoFile,
    /// A file that is there, so that something is missing in it.
    There(String),
}

impl<T: Into<String>> From<T> for Detail {
    fn from(text: T) -> Detail {
        Detail::Text(text.into())
    }
}

impl Detail {
    /// Returns it in words.
    pub fn as_str(&self) -> &str {
        match self {
            Detail::Text(text) | Detail::Largest(text) | Detail::There(text) => text,
            Detail::NoFile => "code in no file",
        }
    }
}

impl Caveat {
    /// The details, in order of appearance, each with its count.
    pub fn details(&self) -> impl Iterator<Item = (&str, u64)> {
        let details = self.details.iter();
        details.map(|(detail, n)| (detail.as_str(), *n))
    }

    /// Of stacks whose unwinding ended, how many did so in code that is in no file.
    pub fn ended_in_no_file(&self) -> u64 {
        if self.kind.subject() != About::BrokenStacks {
            return 0;
        }
        let details = self.details.iter();
        let of_none = details.filter(|(detail, _)| *detail == Detail::NoFile);
        of_none.map(|(_, n)| n).sum()
    }

    /// What would help most.
    pub fn remedy(&self) -> Option<Remedy> {
        let generated = self.ended_in_no_file();
        // Copies lead through code without frame pointers, but not if it is JIT-compiled.
        if generated > self.count / 2 {
            return Some(Remedy::CompleteGeneratedStacks);
        }
        let there = self.details.iter();
        let there = there.filter(|(detail, _)| matches!(detail, Detail::There(_)));
        if there.map(|(_, n)| n).sum::<u64>() > self.count / 2 {
            return Some(Remedy::WriteUnwindRules);
        }
        let is_largest = |(detail, _): &(Detail, u64)| matches!(detail, Detail::Largest(_));
        let has_all = !self.details.is_empty() && self.details.iter().all(is_largest);
        self.kind.remedy().filter(|_| !has_all)
    }

    /// The runtimes whose code it is about, as far as that is known.
    pub fn runtimes(&self) -> &BTreeSet<Runtime> {
        &self.runtimes
    }
}

/// Writes the fact: what and how many, with the heaviest details.
impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.fact(self.count))?;
        let mut order: Vec<&(Detail, u64)> = self.details.iter().collect();
        order.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        // A count next to each says nothing where all are one, or where the only detail is of all.
        let many = match self.details.as_slice() {
            [(_, only)] => *only < self.count,
            several => several.iter().any(|(_, count)| *count > 1),
        };
        for (i, (detail, count)) in order.iter().take(DETAILS_NAMED).enumerate() {
            f.write_str(if i == 0 { ": " } else { ", " })?;
            f.write_str(detail.as_str())?;
            if many {
                write!(f, " ({})", grouped(*count))?;
            }
        }
        let more = self.details.len().saturating_sub(DETAILS_NAMED);
        if self.is_cut {
            f.write_str(" and many more")
        } else if more > 0 {
            write!(f, " and {more} more")
        } else {
            Ok(())
        }
    }
}

/// The collector: one [`Caveat`] per kind.
///
/// ```
/// use proftool::base::{CaveatKind, Caveats};
/// let mut caveats = Caveats::default();
/// caveats.add(CaveatKind::Lost, 3);
/// caveats.add(CaveatKind::Lost, 4);
/// let caveat = caveats.iter().next().unwrap().to_string();
/// assert_eq!(caveat, "7 samples or other records lost while recording");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caveats {
    kinds: BTreeMap<CaveatKind, Caveat>,
    // The samples that minor kinds are counted among; 0 where that is not known.
    samples: u64,
}

impl Caveats {
    /// States how many samples there are that minor kinds count some of.
    pub fn among(&mut self, samples: u64) {
        self.samples = samples;
    }

    /// The kinds that a reader of any view has to know of: all but minor ones of less than 1 % of
    /// the samples.
    ///
    /// ```
    /// use proftool::base::{CaveatKind, Caveats};
    /// let mut caveats = Caveats::default();
    /// caveats.among(1000);
    /// caveats.add(CaveatKind::BrokenStack, 9);
    /// caveats.add(CaveatKind::Lost, 1);
    /// assert_eq!(caveats.notable().count(), 1);
    /// assert_eq!(caveats.iter().count(), 2);
    /// ```
    pub fn notable(&self) -> impl Iterator<Item = &Caveat> {
        self.iter().filter(|caveat| {
            !caveat.kind.is_minor() || caveat.count.saturating_mul(100) >= self.samples
        })
    }

    /// Counts `count` things of this kind.
    pub fn add(&mut self, kind: CaveatKind, count: u64) {
        let caveat = self.entry(kind);
        caveat.count = caveat.count.saturating_add(count);
    }

    /// Counts `count` things of this kind and keeps the detail; equal details are added up.
    pub fn add_detail(&mut self, kind: CaveatKind, count: u64, detail: impl Into<Detail>) {
        self.add(kind, count);
        self.detail(kind, count, detail.into());
    }

    /// Counts `count` things of this kind, each once, and keeps what they were. One thing may have
    /// several details, so that their counts may add up to more than `count`.
    ///
    /// ```
    /// use proftool::base::{CaveatKind, Caveats};
    /// let mut caveats = Caveats::default();
    /// let files = [("a.so".to_owned(), 2), ("b.so".to_owned(), 3)];
    /// caveats.add_once(CaveatKind::NoSymbols, 3, files);
    /// let text = caveats.iter().next().unwrap().to_string();
    /// assert_eq!(text, "3 samples with frames in code without symbols: b.so (3), a.so (2)");
    /// ```
    pub fn add_once(
        &mut self,
        kind: CaveatKind,
        count: u64,
        details: impl IntoIterator<Item = (String, u64)>,
    ) {
        self.add(kind, count);
        for (detail, count) in details {
            self.detail(kind, count, detail.into());
        }
    }

    /// Counts like [`Caveats::add_detail`], but makes the text only while details are still kept.
    pub fn add_with(&mut self, kind: CaveatKind, count: u64, detail: impl FnOnce() -> String) {
        self.add(kind, count);
        if self.entry(kind).details.len() < DETAILS_KEPT {
            self.detail(kind, count, detail().into());
        } else {
            self.entry(kind).is_cut = true;
        }
    }

    fn detail(&mut self, kind: CaveatKind, count: u64, detail: Detail) {
        let caveat = self.entry(kind);
        if let Some((_, n)) = caveat
            .details
            .iter_mut()
            .find(|(known, _)| *known == detail)
        {
            *n = n.saturating_add(count);
        } else if caveat.details.len() < DETAILS_KEPT {
            caveat.details.push((detail, count));
        } else {
            caveat.is_cut = true;
        }
    }

    fn entry(&mut self, kind: CaveatKind) -> &mut Caveat {
        self.kinds.entry(kind).or_insert_with(|| Caveat {
            kind,
            count: 0,
            details: Vec::new(),
            is_cut: false,
            runtimes: BTreeSet::new(),
        })
    }

    /// Counts a thing of this kind if it is the first with this detail.
    pub fn add_new(&mut self, kind: CaveatKind, detail: &str) {
        let known = self.kinds.get(&kind);
        if known.is_none_or(|known| known.details().all(|(text, _)| text != detail)) {
            self.add_detail(kind, 1, detail);
        }
    }

    /// States which runtimes' code this kind is about, if anything of it was counted.
    pub fn note_runtimes(&mut self, kind: CaveatKind, runtimes: &BTreeSet<Runtime>) {
        if let Some(caveat) = self.kinds.get_mut(&kind) {
            caveat.runtimes.extend(runtimes);
        }
    }

    /// States which of the files that this kind names are there.
    pub fn note_files(&mut self, kind: CaveatKind, is_there: impl Fn(&str) -> bool) {
        let details = self.kinds.get_mut(&kind).map(|caveat| &mut caveat.details);
        for (detail, _) in details.into_iter().flatten() {
            if let Detail::Text(file) = detail
                && is_there(file)
            {
                *detail = Detail::There(std::mem::take(file));
            }
        }
    }

    /// Removes this kind: the suspicion turned out to be wrong.
    pub fn dismiss(&mut self, kind: CaveatKind) {
        self.kinds.remove(&kind);
    }

    /// Counts this many fewer of this kind: they turned out to be of another kind.
    pub fn take(&mut self, kind: CaveatKind, count: u64) {
        if let Some(caveat) = self.kinds.get_mut(&kind) {
            caveat.count = caveat.count.saturating_sub(count);
            // It is not known which details these had.
            match caveat.details.as_mut_slice() {
                [(_, only)] => *only = caveat.count.min(*only),
                _ => caveat.details.clear(),
            }
            if caveat.count == 0 {
                self.dismiss(kind);
            }
        }
    }

    /// Adds everything that another collector found.
    pub fn merge(&mut self, other: &Caveats) {
        for caveat in other.iter() {
            self.add(caveat.kind, caveat.count);
            for (detail, count) in &caveat.details {
                self.detail(caveat.kind, *count, detail.clone());
            }
            let entry = self.entry(caveat.kind);
            entry.is_cut |= caveat.is_cut;
            entry.runtimes.extend(&caveat.runtimes);
        }
    }

    /// The caveats in order of kind.
    pub fn iter(&self) -> impl Iterator<Item = &Caveat> {
        self.kinds.values()
    }

    /// How many things of this kind were counted.
    pub fn count(&self, kind: CaveatKind) -> u64 {
        self.kinds.get(&kind).map_or(0, |caveat| caveat.count)
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_not_taken_for_code_in_no_file_by_its_name() {
        let mut caveats = Caveats::default();
        let kind = CaveatKind::NoUnwindRules;
        caveats.add_detail(kind, 3, Detail::NoFile.as_str());
        let of = |caveats: &Caveats| caveats.iter().next().unwrap().remedy();
        assert_eq!(of(&caveats), Some(Remedy::ProvideUnwindRules));
        caveats.add_detail(kind, 2, Detail::NoFile);
        assert_eq!(of(&caveats), Some(Remedy::ProvideUnwindRules));
        caveats.add_detail(kind, 2, Detail::NoFile);
        assert_eq!(of(&caveats), Some(Remedy::CompleteGeneratedStacks));
    }

    #[test]
    fn a_file_that_is_there_need_not_be_provided() {
        let mut caveats = Caveats::default();
        let kind = CaveatKind::NoUnwindRules;
        let of = |caveats: &Caveats| caveats.iter().next().unwrap().remedy();
        caveats.add_detail(kind, 2, "/bin/gone");
        caveats.add_detail(kind, 1, "/bin/there");
        caveats.note_files(kind, |file| file == "/bin/there");
        assert_eq!(of(&caveats), Some(Remedy::ProvideUnwindRules));
        caveats.add_detail(kind, 2, Detail::There("/bin/there".to_owned()));
        assert_eq!(of(&caveats), Some(Remedy::WriteUnwindRules));
    }

    #[test]
    fn larger_copies_help_as_long_as_they_can_be_larger() {
        let mut caveats = Caveats::default();
        let kind = CaveatKind::ShortCopy;
        let of = |caveats: &Caveats| caveats.iter().next().unwrap().remedy();
        caveats.add_detail(kind, 1, Detail::Largest("61440 bytes".to_owned()));
        assert_eq!(of(&caveats), None);
        caveats.add_detail(kind, 1, "8192 bytes");
        assert_eq!(of(&caveats), Some(Remedy::CopyMore));
    }
}
