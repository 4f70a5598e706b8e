//! The machine code of a file, in memory.

use crate::base::Svma;
use crate::binary::{Code, Error};

#[derive(Debug, Default)]
pub(super) struct CodeBytes {
    sections: Vec<(u64, Vec<u8>)>,
}

impl CodeBytes {
    /// Reads them. They are no larger than the file.
    pub(super) fn read(code: &Code<'_>) -> Result<CodeBytes, Error> {
        let mut sections = Vec::new();
        for (start, size) in code.sections() {
            let end = Svma(start.0.saturating_add(size));
            let Some(piece) = code.piece(start, end) else {
                continue;
            };
            let mut buffer = Vec::new();
            let bytes = code.read(piece, &mut buffer)?.to_vec();
            sections.push((start.0, bytes));
        }
        Ok(CodeBytes { sections })
    }

    pub(super) fn from(&self, address: u64) -> Option<&[u8]> {
        let after = self
            .sections
            .partition_point(|(start, _)| *start <= address);
        let (start, bytes) = self.sections.get(after.checked_sub(1)?)?;
        let rest = bytes.get(usize::try_from(address - start).ok()?..)?;
        (!rest.is_empty()).then_some(rest)
    }

    pub(super) fn at(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.from(address)?.get(..length)
    }
}

#[cfg(test)]
impl CodeBytes {
    pub(super) fn of(start: u64, bytes: &[u8]) -> CodeBytes {
        CodeBytes {
            sections: vec![(start, bytes.to_vec())],
        }
    }
}
