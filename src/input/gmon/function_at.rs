//! Which function an address of a gmon.out file belongs to.

use crate::base::Svma;
use crate::binary::Binary;

// The function that holds an address, or the one before it in the same section where none does.
pub(super) fn function_at(program: &Binary, address: u64) -> Option<usize> {
    let functions = program.functions();
    if let Some(function) = program.function_at(Svma(address)) {
        return functions
            .binary_search_by_key(&function.start, |f| f.start)
            .ok();
    }
    let before = functions
        .partition_point(|f| f.start.0 <= address)
        .checked_sub(1)?;
    let start = functions.get(before)?.start;
    let length = address.checked_sub(start.0)?.checked_add(1)?;
    let code = program.code().ok()?;
    let piece = code.piece(start, Svma(start.0.checked_add(length)?))?;
    (piece.length == length).then_some(before)
}
