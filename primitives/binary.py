"""The 4 binary primitives of Table 2 of LPZero.

The evaluator decides how tensors of different shapes are combined (`primitives.naive`); a body here
gets two matrices of fitting shapes, or a 1 x 1 scalar and a matrix.
"""

from __future__ import annotations

from typing import Any

from primitives.registry import binary


@binary(latex="{x} + {y}", sympy=lambda x, y, s: x + y, commutes=True, is_linear=True)
def add(x: Any, y: Any, xp: Any) -> Any:
    """x + y"""
    return x + y


@binary(latex="{x} - {y}", sympy=lambda x, y, s: x - y, is_linear=True)
def sub(x: Any, y: Any, xp: Any) -> Any:
    """x - y"""
    return x - y


@binary(latex=r"{x} \cdot {y}", sympy=lambda x, y, s: s.contraction(x, y), contracts=True)
def matmul(x: Any, y: Any, xp: Any) -> Any:
    """the matrix product; a plain product where a scalar is involved"""
    is_product_of_matrices = x.shape != (1, 1) and y.shape != (1, 1)
    return xp.matmul(x, y) if is_product_of_matrices else x * y


@binary(latex=r"{x} \odot {y}", sympy=lambda x, y, s: x * y, commutes=True)
def mul(x: Any, y: Any, xp: Any) -> Any:
    """the product element by element"""
    return x * y
