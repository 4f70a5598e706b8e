//! Time ranges on the command line.

use proftool::input::TimeRange;

// `A..B` in seconds after the first sample, `A,B` in seconds of the recorder's clock.
pub fn time_range(text: &str) -> Result<TimeRange, String> {
    let absolute = text.split_once(',');
    let (start, end) = absolute
        .or_else(|| text.split_once(".."))
        .ok_or("not a time range, such as 1.5..2")?;
    let nanoseconds = |text: &str| match text.trim() {
        "" => Ok(None),
        text => match text.parse::<f64>() {
            Ok(seconds) if (0.0..1e10).contains(&seconds) => {
                Ok(Some((seconds * 1e9).round() as u64))
            }
            _ => Err(format!("{text} is not a number of seconds")),
        },
    };
    let (start, end) = (nanoseconds(start)?, nanoseconds(end)?);
    let range = if absolute.is_some() {
        TimeRange::of_clock(start, end)
    } else {
        TimeRange::after_first_sample(start, end)
    };
    range.ok_or_else(|| "the range must end after it starts".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_with_dots_and_absolute_with_a_comma() {
        let range = time_range("1.5..2").unwrap();
        let nanoseconds = (Some(1_500_000_000), Some(2_000_000_000));
        assert_eq!((range.start(), range.end()), nanoseconds);
        assert!(!range.is_absolute());
        let range = time_range("86400.25,").unwrap();
        assert_eq!(
            (range.start(), range.end()),
            (Some(86_400_250_000_000), None)
        );
        assert!(range.is_absolute());
        for wrong in ["1", "2..1", "1..1", "1,1"] {
            assert!(time_range(wrong).is_err(), "{wrong}");
        }
    }
}
