//! The matrices of a product.

/// One of the matrices of a product. In the code of products, the lines of a matrix are the rows of C and A, and the columns of
/// B: K runs along a line of A or B, and N along a line of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// The accumulator, M x N.
    C,
    /// The left multiplicand, M x K.
    A,
    /// The right multiplicand, K x N.
    B,
}

impl Matrix {
    /// All three, in the order of the op's operands.
    pub const ALL: [Matrix; 3] = [Matrix::C, Matrix::A, Matrix::B];

    /// Its name as an operand of `gemm`.
    pub fn name(self) -> &'static str {
        match self {
            Matrix::C => "c",
            Matrix::A => "a",
            Matrix::B => "b",
        }
    }
}
