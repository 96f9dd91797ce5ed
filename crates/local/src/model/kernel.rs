//! The arithmetic that everything else is made of, written so that a number depends on nothing but
//! its inputs.
//!
//! Why not a tensor library: a run must be the same bytes from the same seed, whatever else shares the
//! batch, however many threads there are, however wide the SIMD units. So every element of a product
//! is one chain of fused multiply-adds in ascending order of the inner index, and vectors run only
//! across columns; every reduction uses [`LANES`] partial sums, on every machine. A prefix cache then
//! returns exactly what a fresh prefill would. Libraries re-associate by shape and by CPU. For models
//! of this size they also spend most of their time outside the arithmetic.

#![expect(
    clippy::needless_range_loop,
    reason = "index loops over fixed widths are what the compiler vectorises"
)]

use multiversion::multiversion;

/// Partial sums of every reduction.
pub const LANES: usize = 16;

/// Rows of a tile of [`matmul`].
const MR: usize = 8;
/// Columns of a tile of [`matmul`].
const NR: usize = 32;

/// A matrix that is read row by row or column by column: element (i, k) lies at `i * rows + k * cols`.
#[derive(Clone, Copy)]
pub struct Strided<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
}

impl<'a> Strided<'a> {
    /// A row-major matrix with `width` columns.
    #[must_use]
    pub const fn rows(data: &'a [f32], width: usize) -> Self {
        Self { data, rows: width, cols: 1 }
    }

    /// The transpose of a row-major matrix with `width` columns.
    #[must_use]
    pub const fn transposed(data: &'a [f32], width: usize) -> Self {
        Self { data, rows: 1, cols: width }
    }
}

/// `C[m, n] += A[m, k] · B[k, n]`; B and C are row-major and dense.
#[multiversion(targets("x86_64+avx512f+avx512vl+fma", "x86_64+avx2+fma", "aarch64+neon"))]
pub fn matmul(a: Strided<'_>, b: &[f32], c: &mut [f32], m: usize, k: usize, n: usize) {
    assert!(b.len() >= k * n && c.len() >= m * n, "operands are shorter than their shapes");
    let mut i = 0;
    while i < m {
        let rows = MR.min(m - i);
        let mut j = 0;
        while j < n {
            let cols = NR.min(n - j);
            if rows == MR && cols == NR {
                let mut acc = [[0.0_f32; NR]; MR];
                for r in 0..MR {
                    acc[r].copy_from_slice(&c[(i + r) * n + j..][..NR]);
                }
                for x in 0..k {
                    let mut b_row = [0.0_f32; NR];
                    b_row.copy_from_slice(&b[x * n + j..][..NR]);
                    for r in 0..MR {
                        let value = a.data[(i + r) * a.rows + x * a.cols];
                        for q in 0..NR {
                            acc[r][q] = value.mul_add(b_row[q], acc[r][q]);
                        }
                    }
                }
                for r in 0..MR {
                    c[(i + r) * n + j..][..NR].copy_from_slice(&acc[r]);
                }
            } else {
                for r in 0..rows {
                    let mut acc = [0.0_f32; NR];
                    acc[..cols].copy_from_slice(&c[(i + r) * n + j..][..cols]);
                    for x in 0..k {
                        let value = a.data[(i + r) * a.rows + x * a.cols];
                        let b_row = &b[x * n + j..][..cols];
                        if cols == NR {
                            for q in 0..NR {
                                acc[q] = value.mul_add(b_row[q], acc[q]);
                            }
                        } else {
                            for (sum, &w) in acc.iter_mut().zip(b_row) {
                                *sum = value.mul_add(w, *sum);
                            }
                        }
                    }
                    c[(i + r) * n + j..][..cols].copy_from_slice(&acc[..cols]);
                }
            }
            j += cols;
        }
        i += rows;
    }
}
