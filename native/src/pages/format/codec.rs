//! Decompression of a page's body into exactly the bytes its header promises.
//!
//! The decompressor rejects a length that the codec cannot reach from the given bytes; for codecs without such a
//! bound it allocates as bytes arrive.

use std::io::{Cursor, Read};

use parquet::basic::Compression;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Plain,
    Snappy,
    Gzip,
    Brotli,
    Zstd,
    Lz4Raw,
    /// LZ4 in Hadoop's frames, which preceded `Lz4Raw`; some writers omitted the frames.
    Lz4Hadoop,
}

const ALL: [Codec; 7] = [
    Codec::Plain,
    Codec::Snappy,
    Codec::Gzip,
    Codec::Brotli,
    Codec::Zstd,
    Codec::Lz4Raw,
    Codec::Lz4Hadoop,
];
const STEP: usize = 1 << 20; // bytes allocated ahead of the stream

impl Codec {
    /// The codec of a column chunk; LZO, which nothing here writes, is not supported.
    pub fn of(compression: Compression) -> Option<Self> {
        Some(match compression {
            Compression::UNCOMPRESSED => Self::Plain,
            Compression::SNAPPY => Self::Snappy,
            Compression::GZIP(_) => Self::Gzip,
            Compression::BROTLI(_) => Self::Brotli,
            Compression::ZSTD(_) => Self::Zstd,
            Compression::LZ4_RAW => Self::Lz4Raw,
            Compression::LZ4 => Self::Lz4Hadoop,
            Compression::LZO => return None,
        })
    }

    /// The codec's number in an index.
    pub fn number(self) -> u64 {
        self as u64
    }

    pub fn numbered(number: u64) -> Option<Self> {
        ALL.into_iter().find(|codec| codec.number() == number)
    }

    /// Most bytes that one compressed byte can expand to, if the format has such a bound.
    fn reach(self) -> usize {
        match self {
            Self::Plain => 1,
            Self::Snappy => 64,
            Self::Lz4Raw | Self::Lz4Hadoop => 256,
            Self::Gzip => 1_100,
            Self::Brotli | Self::Zstd => usize::MAX,
        }
    }
}

/// Decompresses pages; reuses its state.
#[derive(Default)]
pub struct Decompressor {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    snappy: snap::raw::Decoder,
}

impl Decompressor {
    /// Appends the decompressed `bytes` to `out`, exactly `length` bytes; errors are the end of a sentence.
    pub fn append(
        &mut self,
        codec: Codec,
        bytes: &[u8],
        length: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        if length > bytes.len().saturating_add(16).saturating_mul(codec.reach()) {
            return Err(format!(
                "{} bytes cannot expand to the {length} its header promises",
                bytes.len()
            ));
        }
        let begin = out.len();
        match codec {
            Codec::Plain => out.extend_from_slice(bytes),
            Codec::Snappy => {
                out.resize(begin + length, 0);
                let n = self
                    .snappy
                    .decompress(bytes, &mut out[begin..])
                    .map_err(|error| error.to_string())?;
                out.truncate(begin + n);
            }
            Codec::Gzip => stream(flate2::read::MultiGzDecoder::new(bytes), length, out)?,
            Codec::Brotli => stream(brotli_decompressor::Decompressor::new(bytes, 4096), length, out)?,
            Codec::Zstd if length <= 64 * STEP => self.zstd(bytes, length, out)?,
            Codec::Zstd => {
                let decoder =
                    zstd::stream::read::Decoder::with_buffer(bytes).map_err(|error| error.to_string())?;
                stream(decoder, length, out)?;
            }
            Codec::Lz4Raw => lz4(bytes, length, out)?,
            Codec::Lz4Hadoop => {
                if hadoop(bytes, length, out).is_err() {
                    out.truncate(begin);
                    lz4(bytes, length, out)?;
                }
            }
        }
        match out.len() - begin {
            found if found == length => Ok(()),
            found => Err(format!("it holds {found} bytes, its header promises {length}")),
        }
    }

    fn zstd(&mut self, bytes: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let decompressor = match &mut self.zstd {
            Some(made) => made,
            none => none.insert(zstd::bulk::Decompressor::new().map_err(|error| error.to_string())?),
        };
        let begin = out.len();
        out.reserve_exact(length); // without zeroing bytes that are overwritten
        let mut end = Cursor::new(&mut *out);
        end.set_position(begin as u64);
        decompressor
            .decompress_to_buffer(bytes, &mut end)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// Reads a stream to its end or one byte beyond `length`, allocating as bytes arrive.
fn stream(reader: impl Read, length: usize, out: &mut Vec<u8>) -> Result<(), String> {
    out.reserve(length.min(STEP));
    let most = (length as u64).saturating_add(1);
    reader
        .take(most)
        .read_to_end(out)
        .map(drop)
        .map_err(|error| error.to_string())
}

fn lz4(bytes: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let begin = out.len();
    out.resize(begin + length, 0);
    let n = lz4_flex::block::decompress_into(bytes, &mut out[begin..]).map_err(|error| error.to_string())?;
    out.truncate(begin + n);
    Ok(())
}

/// Frames of: decompressed length, compressed length (both big-endian, 4 bytes), block.
fn hadoop(mut bytes: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let number = |bytes: &[u8]| bytes.try_into().map(u32::from_be_bytes).unwrap_or(u32::MAX) as usize;
    let mut left = length;
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(8).ok_or("a frame is cut short")?;
        let (promised, stored) = (number(&head[..4]), number(&head[4..]));
        let (block, rest) = rest.split_at_checked(stored).ok_or("a frame is cut short")?;
        left = left
            .checked_sub(promised)
            .ok_or("a frame holds more than the page")?;
        lz4(block, promised, out)?;
        bytes = rest;
    }
    if left == 0 {
        Ok(())
    } else {
        Err("frames are missing".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn compressed(codec: Codec, bytes: &[u8]) -> Vec<u8> {
        match codec {
            Codec::Plain => bytes.to_vec(),
            Codec::Snappy => snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
            Codec::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Codec::Zstd => zstd::bulk::compress(bytes, 1).unwrap(),
            Codec::Lz4Raw => lz4_flex::block::compress(bytes),
            Codec::Lz4Hadoop => bytes
                .chunks(100)
                .flat_map(|part| {
                    let block = lz4_flex::block::compress(part);
                    let lengths = [part.len() as u32, block.len() as u32].map(u32::to_be_bytes);
                    [lengths.concat(), block].concat()
                })
                .collect(),
            Codec::Brotli => {
                unreachable!("no encoder here: tests/blender/parquet/test_pages.py has pyarrow's")
            }
        }
    }

    const WRITTEN: [Codec; 6] = [
        Codec::Plain,
        Codec::Snappy,
        Codec::Gzip,
        Codec::Zstd,
        Codec::Lz4Raw,
        Codec::Lz4Hadoop,
    ];

    #[test]
    fn a_codec_has_one_number() {
        for codec in ALL {
            assert_eq!(Codec::numbered(codec.number()), Some(codec));
        }
        assert_eq!(Codec::numbered(99), None);
    }

    #[test]
    fn a_promise_out_of_reach_takes_no_space() {
        for codec in ALL {
            let mut out = Vec::new();
            assert!(
                Decompressor::default()
                    .append(codec, &[1, 2, 3], i32::MAX as usize, &mut out)
                    .is_err()
            );
            assert!(out.capacity() <= 64 * STEP);
        }
    }

    #[test]
    fn old_lz4_without_frames_is_read() {
        let mut out = vec![9];
        Decompressor::default()
            .append(
                Codec::Lz4Hadoop,
                &compressed(Codec::Lz4Raw, &[5; 300]),
                300,
                &mut out,
            )
            .unwrap();
        assert_eq!((out.len(), out[0]), (301, 9));
    }

    proptest! {
        #[test]
        fn compressed_bytes_come_back(bytes in proptest::collection::vec(0u8..4, 0..400), which in 0usize..6) {
            let mut out = vec![1, 2];
            let packed = compressed(WRITTEN[which], &bytes);
            Decompressor::default().append(WRITTEN[which], &packed, bytes.len(), &mut out).unwrap();
            prop_assert_eq!(&out[2..], &bytes[..]);
            for other in [bytes.len() + 1, bytes.len().saturating_sub(1)] {
                if other != bytes.len() {
                    prop_assert!(Decompressor::default().append(WRITTEN[which], &packed, other, &mut out).is_err());
                }
            }
        }

        #[test]
        fn any_bytes_are_refused_or_give_the_promised_length(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), length in 0usize..1000, which in 0usize..7
        ) {
            let mut out = Vec::new();
            if Decompressor::default().append(ALL[which], &bytes, length, &mut out).is_ok() {
                prop_assert_eq!(out.len(), length);
            }
        }
    }
}
