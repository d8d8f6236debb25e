// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a payload of up to 1 MiB is one region wherever the device can do that, and fits in
//! the segments that every server takes wherever an administrator wants smaller ones.

use super::*;
use crate::kunit::{
    claim,
    drivers::limits,
    same, //
};
use kernel::prelude::*;
use xdr::{
    lists_size,
    v2::Properties,
    MIN_HEADER, //
};

/// What the smallest inline threshold leaves for the header.
const LEAST_THRESHOLD: usize = 1024;
const MIB: u32 = 1 << 20;

/// Pages that `len` bytes touch which begin `base` bytes into one of 4 KiB.
fn pages(base: u32, len: u32) -> u32 {
    (base + len).div_ceil(4096)
}

/// A device with regions of so many pages.
fn device(pages: u32) -> DeviceLimits {
    DeviceLimits {
        max_region_pages: pages,
        ..limits(8192, 8192)
    }
}

fn counts(pages: u32, allowed: u32) -> Result<RegionCounts, Unsupported> {
    RegionCounts::new(&device(pages), allowed)
}

/// Those where pieces are bounced.
fn where_bounced(pages: u32, allowed: u32) -> Result<RegionCounts, Unsupported> {
    let device = DeviceLimits {
        bounces: true,
        ..device(pages)
    };
    RegionCounts::new(&device, allowed)
}

#[kunit_tests(rpcrdma_segments)]
mod suite {
    use super::*;

    /// What a responder says of segments.
    fn limits_of(segments: u32, segment_bytes: u32) -> ChunkLimits {
        let mut limits = ChunkLimits::NONE;
        limits.apply(&Properties {
            segments,
            segment_bytes,
            ..Properties::default()
        });
        limits
    }

    /// The parts of a payload: itself, and its padding.
    fn payload(offset: usize, len: usize) -> [(usize, usize); 2] {
        [(offset, len), (0, len.wrapping_neg() & 3)]
    }

    #[test]
    fn payloads_within_what_the_responder_takes() -> Result {
        // Pages of a region, segments of a header, bytes of one; the payload.
        for (pages, segments, bytes, expected) in [
            (512, 16, 1 << 20, 1 << 20),
            (256, 16, 1 << 20, 257 << 12),
            (16, 16, 1 << 20, 14 << 16),
            (16, 18, 1 << 20, 1 << 20),
            // There is one region for it.
            (512, 16, 8192, 8192),
            (16, 16, 8192, 14 << 13),
            (512, 2, 1 << 20, 4096),
            (512, 0, 1, 4096),
        ] {
            let most = counts(pages, 0)?.payload_within(&limits_of(segments, bytes));
            same("payload", most, expected)?;
        }
        let all = counts(16, 0)?.payload_within(&ChunkLimits::NONE);
        same("without limits", all, 257 << 12)
    }

    #[test]
    fn chunks_that_cannot_be_within_limits() -> Result {
        let regions = counts(16, 0)?;
        for (offset, len, segments, bytes, may) in [
            (0, 65536, 1, 1 << 20, true),
            (0, 65540, 1, 1 << 20, false),
            (4, 65536, 1, 1 << 20, false),
            (4, 65536, 2, 1 << 20, true),
            (4, 65532, 1, 1 << 20, true),
            // Padding may have a segment.
            (0, 65533, 1, 1 << 20, false),
            (0, 65533, 2, 1 << 20, true),
            // Shorter segments begin anywhere in a page.
            (4092, 16384, 16, 1024, true),
            (4092, 16388, 16, 1024, false),
            // A region that begins at the end of a page has fewer bytes than the responder takes.
            (0, 122_880, 2, 65532, true),
            (0, 122_884, 2, 65532, false),
            (0, 8192, 1, 4096, false),
            (0, 8192, 2, 4096, true),
            (0, 4, 0, 4096, false),
            (0, 0, 0, 1, true),
        ] {
            let found = regions.may_cover(&payload(offset, len), &limits_of(segments, bytes), 0);
            same("may cover", found, may)?;
        }
        // Pieces that do not join may need a region more at each end.
        let broken = where_bounced(16, 0)?;
        let fits = |n| broken.may_cover(&payload(0, 65536), &limits_of(n, 1 << 20), 0);
        same("joined", fits(2), false)?;
        same("not joined", fits(3), true)?;
        let fits = |used| regions.may_cover(&payload(0, 65536), &limits_of(3, 1 << 20), used);
        same("beside two segments", fits(2), true)?;
        same("beside three", fits(3), false)?;
        for (head, pages, tail, may) in [
            (100, 131_072, 100, true),
            (100, 131_073, 100, false),
            (100, 131_073, 0, true),
            (0, 262_144, 0, true),
            (65537, 131_072, 0, true),
            (65537, 131_072, 4, false),
        ] {
            let message = [(0, head), (0, pages), (0, tail)];
            let found = regions.may_cover(&message, &limits_of(4, 1 << 20), 0);
            same("message", found, may)?;
        }
        // Where nothing is limited, every message has a chunk that an RPC has regions for.
        for pages in [16, 64, 257] {
            for regions in [counts(pages, 0)?, where_bounced(pages, 0)?] {
                let all = 257 << 12;
                let message = [(0, 4096), (0, all), (0, 4096)];
                let found = regions.may_cover(&message, &ChunkLimits::NONE, 0);
                same("the longest", found, true)?;
                let payload = payload(4095, all - 4095);
                let found = regions.may_cover(&payload, &ChunkLimits::NONE, 0);
                same("the longest payload", found, true)?;
            }
        }
        Ok(())
    }

    #[test]
    fn as_many_pages_as_the_device_has() -> Result {
        // rxe, siw, a Chelsio adapter, one that covers more than any payload.
        for (device, expected) in [(512, 257), (256, 256), (64, 64), (u32::MAX, 257), (17, 17)] {
            same("pages", counts(device, 0)?.pages, expected)?;
        }
        Ok(())
    }

    #[test]
    fn no_more_pages_than_allowed() -> Result {
        for (device, allowed, expected) in [
            (512, 17, 17),
            (512, 30, 30),
            (512, 257, 257),
            (256, 257, 256),
            (64, 257, 64),
            (64, 64, 64),
            (512, u32::MAX, 257),
        ] {
            let regions = counts(device, allowed)?;
            same("pages", regions.pages, expected)?;
        }
        Ok(())
    }

    #[test]
    fn regions_of_one_mib() -> Result {
        for (device, allowed, aligned, anywhere) in [
            (512, 0, 1, 1),
            (257, 0, 1, 1),
            // siw: what does not begin with a page needs one page more than a region has.
            (256, 0, 1, 2),
            (255, 0, 2, 2),
            (512, 30, 9, 9),
            (512, 18, 15, 15),
            (512, 17, 16, 16),
        ] {
            let regions = counts(device, allowed)?;
            same("aligned", regions.aligned, aligned)?;
            same("anywhere", regions.payload, anywhere)?;
        }
        Ok(())
    }

    #[test]
    fn any_payload_is_one_region() -> Result {
        let rxe = counts(512, 0)?.pages;
        let siw = counts(256, 0)?.pages;
        for len in Iterator::chain((1..=MIB).step_by(4095), [MIB - 1, MIB]) {
            for base in [0, 1, 2048, 4095] {
                claim(pages(base, len) <= rxe, "one region on rxe")?;
                // siw lacks a page for the longest that begin off a page.
                let fits = pages(base, len) <= siw;
                claim(fits || (base != 0 && len > MIB - 4096), "one on siw")?;
            }
        }
        Ok(())
    }

    #[test]
    fn every_server_takes_the_segments() -> Result {
        for allowed in 17..=257 {
            for device in [256, 257, 512] {
                let regions = counts(device, allowed)?;
                claim(regions.payload <= 16, "the largest payload fits")?;
                claim(16 * regions.pages >= pages(4095, MIB), "with its pages")?;
            }
        }
        // One that begins with a page.
        same("of the smallest regions", counts(16, 0)?.aligned, 16)?;
        for allowed in 19..=257 {
            let regions = counts(512, allowed)?;
            claim(regions.message() <= 16, "so does a whole message")?;
        }
        // More than each server has to take (RFC 8267, section 6.4.2): of a payload anywhere, of a
        // whole message, and of one whose pieces do not join.
        for (device, allowed, payload, message, bounced) in [
            (16, 0, 17, 19, 23),
            (512, 17, 16, 18, 22),
            (512, 18, 15, 17, 21),
        ] {
            let regions = counts(device, allowed)?;
            same("of a payload", regions.payload, payload)?;
            same("of a message", regions.message(), message)?;
            same(
                "bounced",
                where_bounced(device, allowed)?.message(),
                bounced,
            )?;
        }
        Ok(())
    }

    #[test]
    fn regions_that_are_too_small() -> Result {
        for (device, allowed) in [(0, 0), (1, 0), (15, 0), (512, 15), (512, 1), (15, 257)] {
            let refused = counts(device, allowed).err();
            claim(
                matches!(refused, Some(Unsupported::FewPages { needed: 16, .. })),
                "it is refused",
            )?;
        }
        Ok(())
    }

    #[test]
    fn the_largest_header_fits_the_smallest_threshold() -> Result {
        for allowed in [0, 16, 17, 30, 256] {
            let regions = where_bounced(512, allowed)?;
            let message = regions.message() as usize;
            let header = MIN_HEADER + lists_size(message, [], Some(message));
            claim(header <= LEAST_THRESHOLD, "whole messages both ways")?;
            let header = MIN_HEADER + lists_size(message, [regions.segments()], None);
            claim(header <= LEAST_THRESHOLD, "and with a Write chunk")?;
        }
        Ok(())
    }

    #[test]
    fn regions_of_an_rpc() -> Result {
        for (device, allowed, message, segments) in
            [(512, 0, 3, 2), (256, 0, 4, 3), (512, 17, 18, 17)]
        {
            let regions = counts(device, allowed)?;
            same("of a message", regions.message(), message)?;
            same("of an RPC", regions.rpc(), 2 * message)?;
            same("of a chunk", regions.segments(), segments)?;
            same("of gaps", regions.gaps(3), 3)?;
            // Each of the two pieces in front of whole pages and behind them, too.
            same("of gaps then", where_bounced(device, allowed)?.gaps(3), 9)?;
            // A READ's chunk with padding and a whole Call beside it are within that.
            claim(segments < regions.rpc() as usize, "a list has room for it")?;
            // A head that ends a page, whole pages and a tail: each of the three parts may be two
            // pieces that do not join, and the pages have one more in front of the whole ones, and
            // one behind them.
            same(
                "where pieces do not join",
                where_bounced(device, allowed)?.message(),
                message + 4,
            )?;
            same(
                "of a chunk then",
                where_bounced(device, allowed)?.segments(),
                segments + 2,
            )?;
        }
        Ok(())
    }
}
