//! How far shares may be off: held against the definition, over random weights.

use proftool::analysis::sampling_error::{self, SamplingError};
use proftool::base::{CaveatKind, Event, Sampling, WeightSum};
use proftool::profile::{Builder, EventId, Filter, Function, Module, Profile, Thread, Weighing};
use proptest::collection::vec;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

/// A profile of samples, each of a function, a thread and a weight.
fn profile(sampling: Sampling, samples: &[(usize, usize, u64)], lost: u64) -> Profile {
    let mut builder = Builder::default();
    let event = builder.sampled_event(Event::named("cycles"), sampling);
    let module = builder.module(Module {
        name: "app".into(),
        path: "/bin/app".into(),
    });
    let paths: Vec<_> = (0..4)
        .map(|n| {
            let function = builder.function(Function::named(format!("f{n}"), module));
            builder.path(None, function, false)
        })
        .collect();
    for &(function, thread, weight) in samples {
        let thread = builder.thread(Thread::new(1, thread as i32, "app"));
        builder.sample(event, thread, paths[function], None, WeightSum::of(weight));
    }
    if lost > 0 {
        builder.caveats().add(CaveatKind::Lost, lost);
    }
    builder.finish()
}

fn error(profile: &Profile, filter: &Filter) -> SamplingError {
    sampling_error::of(profile, &profile.select(EventId::new(0), filter))
}

proptest! {
    #[test]
    fn the_error_is_that_of_the_effective_number_of_the_selected_samples(
        samples in vec((0..4usize, 1..4usize, 1..1_000_000u64), 1..60),
        tid in 1..4i32,
        counted in proptest::bool::ANY,
    ) {
        let profile = profile(Sampling::Drawn, &samples, 0);
        let filter = Filter {
            tids: vec![tid],
            weighing: if counted { Weighing::Samples } else { Weighing::Weight },
            ..Filter::default()
        };
        let weights: Vec<f64> = samples
            .iter()
            .filter(|sample| sample.1 as i32 == tid)
            .map(|sample| if counted { 1.0 } else { sample.2 as f64 })
            .collect();
        let got = error(&profile, &filter);
        let SamplingError::Sampled { effective_samples, half_width } = got else {
            prop_assert_eq!(got, SamplingError::Unknown);
            prop_assert!(weights.is_empty());
            return Ok(());
        };
        let sum: f64 = weights.iter().sum();
        let number = sum * sum / weights.iter().map(|w| w * w).sum::<f64>();
        prop_assert!((effective_samples - number).abs() < 1e-6 * number);
        prop_assert!((half_width - 0.98 / number.sqrt()).abs() < 1e-6);
        // Never more than there are, and unequal weights never make it more certain.
        prop_assert!(effective_samples <= weights.len() as f64 * (1.0 + 1e-9));
    }
}

#[test]
fn a_census_has_no_sampling_error_unless_something_was_lost() {
    let samples = [(0, 1, 1), (1, 1, 1)];
    let all = Filter::default();
    let census = profile(Sampling::Census, &samples, 0);
    assert_eq!(error(&census, &all), SamplingError::Census);
    let lossy = profile(Sampling::Census, &samples, 7);
    let incomplete = SamplingError::IncompleteCensus {
        lost: 7,
        throttled: 0,
        intervals: 0,
    };
    assert_eq!(error(&lossy, &all), incomplete);
    // Of weights from elsewhere nothing is claimed.
    let unknown = profile(Sampling::Unknown, &samples, 0);
    assert_eq!(error(&unknown, &all), SamplingError::Unknown);
}
