//! Warp-wide instructions, and barriers with thread counts and reductions.

use crate::harness::{Random, map};

/// The lane that lane `lane` of a segment of `width` reads, as CUDA's `__shfl_*_sync` functions define it.
fn source(mode: &str, lane: u32, offset: u32, width: u32) -> (u32, bool) {
    let first = lane / width * width;
    let last = first + width - 1;
    let (wanted, inside) = match mode {
        "up" => (lane.wrapping_sub(offset), lane - first >= offset),
        "down" => (lane + offset, lane + offset <= last),
        "bfly" => (lane ^ offset, lane ^ offset <= last),
        _ => (first + offset % width, true),
    };
    if inside { (wanted, true) } else { (lane, false) }
}

#[test]
fn shuffles_stay_in_segments_of_every_width() {
    let values = Random(10).words(32);
    for mode in ["up", "down", "bfly", "idx"] {
        for (width, offset) in [32, 16, 8, 4, 2].into_iter().flat_map(|width| [0, 1, 3, 5, 16].map(|by| (width, by))) {
            let control = (32 - width) << 8 | if mode == "up" { 0 } else { 31 };
            let body = format!("shfl.sync.{mode}.b32 %o0|%p1, %i0, {offset}, {control}, -1;\nselp.b32 %o1, 1, 0, %p1;");
            let found: [Vec<u32>; 2] = map(&body, &[&values]);
            let want = (0..32).map(|lane| source(mode, lane, offset, width));
            let (read, inside): (Vec<u32>, Vec<u32>) =
                want.map(|(from, inside)| (values[from as usize], u32::from(inside))).unzip();
            assert_eq!(found, [read, inside], "{mode} by {offset} in {width}");
        }
    }
}

#[test]
fn lanes_shuffle_by_their_own_offsets_and_in_groups() {
    let values = Random(11).words(32);
    let body = "and.b32 %r10, %r1, 7;\nshfl.sync.idx.b32 %o0, %i0, %r10, 0x1f, 0xffffffff;\n\
                setp.lt.u32 %p1, %r1, 12;\nmov.b32 %o1, 0;\n@%p1 shfl.sync.bfly.b32 %o1, %i0, 1, 31, 0xfff;";
    let [all, some] = map(body, &[&values]);
    for lane in 0..32 {
        assert_eq!(all[lane], values[lane % 8]);
        assert_eq!(some[lane], if lane < 12 { values[lane ^ 1] } else { 0 });
    }
}

#[test]
fn votes_see_all_members() {
    let body = "setp.lt.u32 %p1, %r1, 10;\nsetp.lt.u32 %p2, %r1, 40;\nvote.sync.ballot.b32 %o0, %p1, -1;\n\
                vote.sync.all.pred %p3, %p1, -1;\nvote.sync.any.pred %p4, %p1, -1;\nvote.sync.uni.pred %p5, !%p2, -1;\n\
                selp.b32 %r10, 1, 0, %p3;\nselp.b32 %r11, 2, 0, %p4;\nselp.b32 %r12, 4, 0, %p5;\n\
                or.b32 %o1, %r10, %r11;\nor.b32 %o1, %o1, %r12;\nmov.b32 %o2, 0;\n@%p1 activemask.b32 %o2;\n\
                mov.b32 %o3, 0;\n@%p1 vote.sync.ballot.b32 %o3, !%p1, 0x3ff;";
    let [ballot, holds, active, none] = map(body, &[]);
    assert_eq!(ballot, [0x3ff; 32]);
    assert_eq!(holds, [6; 32]);
    assert_eq!((active[3], active[20]), (0x3ff, 0));
    assert_eq!(none, [0; 32]);
}

#[test]
fn matches_find_equal_values() {
    let values: Vec<u32> = (0..32).map(|lane| lane % 3).collect();
    let body = "match.any.sync.b32 %o0, %i0, -1;\nmov.b64 %rd5, {%i0, 7};\nmatch.any.sync.b64 %o1, %rd5, -1;\n\
                match.all.sync.b32 %o2|%p1, %i0, -1;\nselp.b32 %o3, 1, 0, %p1;\nmov.b32 %r10, 5;\n\
                match.all.sync.b32 %o4|%p2, %r10, -1;\nselp.b32 %o5, 1, 0, %p2;";
    let [any, wide, all, differ, equal, same] = map(body, &[&values]);
    let want: Vec<u32> = (0..32u32)
        .map(|lane| (0..32u32).filter(|other| other % 3 == lane % 3).map(|other| 1u32 << other).sum())
        .collect();
    assert_eq!((&any, &wide), (&want, &want));
    assert_eq!((all, differ), (vec![0; 32], vec![0; 32]));
    assert_eq!((equal, same), (vec![u32::MAX; 32], vec![1; 32]));
}

#[test]
fn redux_reduces_integers_and_singles() {
    let values = Random(12).words(32);
    let signed = |word: &u32| *word as i32;
    let singles: Vec<u32> = (0..32).map(|lane| (lane as f32 - 20.5).to_bits()).collect();
    let [add, least, greatest, and, or, xor, lowest, largest] = map(
        "redux.sync.add.s32 %o0, %i0, -1;\nredux.sync.min.s32 %o1, %i0, -1;\nredux.sync.max.u32 %o2, %i0, -1;\n\
         redux.sync.and.b32 %o3, %i0, -1;\nredux.sync.or.b32 %o4, %i0, -1;\nredux.sync.xor.b32 %o5, %i0, -1;\n\
         redux.sync.min.f32 %o6, %i1, -1;\nredux.sync.max.abs.NaN.f32 %o7, %i1, -1;",
        &[&values, &singles],
    );
    assert_eq!(add, [values.iter().fold(0, |sum: u32, value| sum.wrapping_add(*value)); 32]);
    assert_eq!(least, [values.iter().map(signed).min().unwrap_or(0) as u32; 32]);
    assert_eq!(greatest, [values.iter().copied().max().unwrap_or(0); 32]);
    assert_eq!(and, [values.iter().fold(u32::MAX, |all, value| all & value); 32]);
    assert_eq!(or, [values.iter().fold(0u32, |all, value| all | value); 32]);
    assert_eq!(xor, [values.iter().fold(0u32, |all, value| all ^ value); 32]);
    assert_eq!(lowest, [(-20.5f32).to_bits(); 32]);
    assert_eq!(largest, [20.5f32.to_bits(); 32]);
}

#[test]
fn barriers_count_and_combine_predicates() {
    let body = "setp.lt.u32 %p1, %r1, 10;\nbar.red.popc.u32 %o0, 0, %p1;\nbar.red.and.pred %p2, 1, 32, %p1;\n\
                barrier.cta.red.or.aligned.pred %p3, 2, !%p1;\nbarrier.sync 3, 32;\nbarrier.sync.aligned 4;\n\
                bar.cta.sync 5, 32;\nselp.b32 %o1, 1, 0, %p2;\nselp.b32 %o2, 1, 0, %p3;\n\
                elect.sync %r10|%p4, -1;\nselp.b32 %o3, 1, 0, %p4;";
    let [count, and, or, elected] = map(body, &[]);
    assert_eq!((count, and, or), (vec![10; 32], vec![0; 32], vec![1; 32]));
    assert_eq!(elected.iter().sum::<u32>(), 1);
}
