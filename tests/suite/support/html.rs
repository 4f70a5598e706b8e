//! The data of a page.

use std::io::Read;
use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub fn proftool(arguments: &[&str], directory: &Path) -> Vec<u8> {
    let done = Command::new(env!("CARGO_BIN_EXE_proftool"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {said}");
    done.stdout
}

pub fn json(arguments: &[&str], directory: &Path) -> Value {
    let mut arguments = Vec::from(arguments);
    arguments.extend(["--format", "json", "--limit", "0", "--min", "0"]);
    serde_json::from_slice(&proftool(&arguments, directory)).unwrap()
}

/// What stands between the tag that begins so and the end of its element.
pub fn inside<'a>(page: &'a str, opening: &str, closing: &str) -> &'a str {
    let (_, rest) = page.split_once(opening).unwrap();
    rest.split_once(closing).unwrap().0
}

pub fn data(page: &str) -> Value {
    let opening = "<script type=\"application/json\" id=\"data\">";
    serde_json::from_str(inside(page, opening, "</script>")).unwrap()
}

/// The numbers of packed columns.
pub fn unpacked(text: &Value) -> Vec<u64> {
    let bytes = STANDARD.decode(text.as_str().unwrap()).unwrap();
    let mut inflated = Vec::new();
    let mut inflate = flate2::read::DeflateDecoder::new(&*bytes);
    inflate.read_to_end(&mut inflated).unwrap();
    let (mut numbers, mut number, mut shift) = (Vec::new(), 0u64, 0);
    for byte in inflated {
        number |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    numbers
}

pub fn numbers(list: &Value) -> Vec<u64> {
    let list = list.as_array().unwrap();
    list.iter().map(|it| it.as_u64().unwrap()).collect()
}

/// The same of the flat profile.
pub fn flat_rows(flat: &Value) -> Vec<(String, String, u64, u64)> {
    let functions = flat["functions"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    functions
        .map(|row| {
            (
                text(&row["name"]),
                text(&row["module"]),
                row["self"].as_u64().unwrap(),
                row["total"].as_u64().unwrap(),
            )
        })
        .collect()
}
