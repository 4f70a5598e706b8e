//! The names of parts of functions.

// The name of the function that a part belongs to. GCC and LLVM name parts `.cold`, `.cold.1`,
// `.part.0`, BOLT `.warm`; versions of a function for some arguments, `.constprop.0` and `.isra.0`,
// are functions of their own, unless they are versions of a part.
pub(super) fn whole(name: &str) -> &str {
    let mut from = 0;
    while let Some(dot) = name[from..].find('.').map(|dot| from + dot) {
        let suffix = &name[dot..];
        let is_part = |mark: &str| {
            suffix
                .strip_prefix(mark)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let marks = [".cold", ".part", ".__part", ".warm"];
        if dot > 0 && marks.into_iter().any(is_part) {
            return &name[..dot];
        }
        from = dot + 1;
    }
    name
}

// Whether a part by name is code that was moved out of the way: `.part` may be a function that
// others call too.
pub(super) fn is_moved(part: &str) -> bool {
    let mark = part.get(whole(part).len()..).unwrap_or_default();
    let moved = [".cold", ".warm", ".__part"];
    moved.iter().any(|moved| mark.starts_with(moved))
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn parts_belong_to_their_function() {
        let cases = [
            ("f", "f"),
            ("f.cold", "f"),
            ("f.cold.1", "f"),
            ("f.warm", "f"),
            ("f.part.0", "f"),
            ("f.part.0.isra.0.cold", "f"),
            ("f.constprop.0", "f.constprop.0"),
            ("f.constprop.0.cold", "f.constprop.0"),
            ("f.colder", "f.colder"),
            (".cold", ".cold"),
            ("é.cold.é", "é"),
        ];
        for (name, of) in cases {
            assert_eq!(whole(name), of, "{name}");
        }
    }
}
