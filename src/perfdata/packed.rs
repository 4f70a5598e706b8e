//! Records that are kept for later in little memory.

// The level at which zstd is fastest; records of one program are much alike, and higher levels gain
// little.
const LEVEL: i32 = 1;

/// Bytes, compressed.
#[derive(Clone, Debug)]
pub struct Packed {
    compressed: Box<[u8]>,
    size: usize,
}

impl Packed {
    /// Compresses `bytes`.
    ///
    /// ```
    /// use proftool::perfdata::Packed;
    /// let packed = Packed::new(&[7; 100_000]);
    /// assert!(packed.size() < 1000);
    /// assert_eq!(packed.bytes(), [7; 100_000]);
    /// ```
    pub fn new(bytes: &[u8]) -> Packed {
        let mut compressed = vec![0; zstd_safe::compress_bound(bytes.len())];
        let size = zstd_safe::compress(&mut compressed[..], bytes, LEVEL);
        compressed.truncate(size.expect("there is room for any bytes"));
        Packed {
            compressed: compressed.into_boxed_slice(),
            size: bytes.len(),
        }
    }

    /// How many bytes it takes.
    pub fn size(&self) -> usize {
        self.compressed.len()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.size];
        zstd_safe::decompress(&mut bytes[..], &self.compressed).expect("it was compressed here");
        bytes
    }
}
