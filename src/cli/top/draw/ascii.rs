//! Screens without characters beyond ASCII.

use ratatui::buffer::Buffer;

// Replaces each other character by one that looks similar, or by a question mark.
pub fn replace(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let symbol = similar(cell.symbol());
            cell.set_symbol(symbol);
        }
    }
}

fn similar(symbol: &str) -> &'static str {
    match symbol {
        "…" | "⋯" => "~",
        "·" => "|",
        "→" | "▸" => ">",
        "←" => "<",
        "▾" => "v",
        "↳" => "`",
        "↑" => "^",
        "µ" => "u",
        "≈" => "=",
        "≥" => ">",
        "≤" => "<",
        "─" => "-",
        "┼" | "┬" | "┴" => "+",
        "×" => "x",
        "│" | "╭" | "╰" | "├" | "└" => "|",
        "▶" => ">",
        _ => "?",
    }
}
