//! Refuses the formats whose readers are not built in.

pub(in crate::input) mod pprof {
    use std::io::Read;

    use crate::input::Reason;
    use crate::profile::Profile;

    // What a compressed file holds is not known before it is inflated.
    pub(in crate::input) fn read_compressed(_: impl Read) -> Result<Profile, Reason> {
        Err(Reason::Compressed { format: "gzip" })
    }

    pub(in crate::input) fn read_plain(_: impl Read) -> Result<Profile, Reason> {
        Err(Reason::NotBuiltIn { format: "pprof" })
    }
}

pub(in crate::input) mod speedscope {
    use std::io::Read;

    use crate::input::Reason;
    use crate::profile::Profile;

    // Reads nothing: no document will be read from it.
    pub(in crate::input) fn whole(_: impl Read) -> Result<Vec<u8>, Reason> {
        Err(Reason::NotBuiltIn {
            format: "speedscope",
        })
    }

    pub(in crate::input) fn is_document(_: &[u8]) -> bool {
        true
    }

    pub(in crate::input) fn read(_: Vec<u8>) -> Result<Profile, Reason> {
        Err(Reason::NotBuiltIn {
            format: "speedscope",
        })
    }
}
