"""Triton kernels for attention with position scores. They write no T x T tensor to GPU memory.

A score is `scale * (q_i k_j + q_i p_r + k_j u_r)`, where r is the table row of the distance i - j (LTG-BERT, Section
4). The kernel multiplies a block of queries with all rows p_r of the table of position keys, and a block of keys with
all rows u_r of the table of position queries. Each pair (i, j) then reads the products of its row r. In the backward
pass, the gradient of row r is the sum of the scores' gradients over all distances that have the row r. These distances
are consecutive, so the sum is a difference of two prefix sums and needs no scatter operation.

As in FlashAttention, the softmax is computed over blocks of keys, and recomputed in the backward pass. Products are
computed in the precision of the tensors, sums in fp32. `position_attention` calls these kernels.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
# Score of hidden pairs: finite, so that a query that may attend to no key produces no NaN.
HIDDEN = tl.constexpr(-1.0e30)


@triton.jit
def _mixed(x):
    """Return a hash of `x`, uint32, in which every bit depends on all bits of `x`."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _random_keys(seed_pointer, of):
    """Return two random uint32 numbers that depend on the seed and on `of`, the index of a sequence and head."""
    seed = tl.load(seed_pointer)
    low, high = seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    first = _mixed(low ^ _mixed(of.to(tl.uint32)))
    return first, _mixed(high + first)


@triton.jit
def _kept(first, second, pair, threshold):
    """Return True if dropout keeps the attention probability of a query-key pair, that is, if the pair's uint32 hash is
    at least `threshold`. `pair` is i * T + j for query i, key j and T tokens; `first` and `second` are random keys.
    """
    x = pair.to(tl.uint32) * 0x9E3779B1 + first
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = ((x ^ (x >> 15)) ^ second) * 0x846CA68B
    return (x ^ (x >> 16)) >= threshold.to(tl.uint32)


@triton.jit
def _tile(pointer, rows, n_rows, stride, D: tl.constexpr):
    """Return the given `rows` of a matrix with `n_rows` rows; rows beyond the matrix are 0."""
    columns = tl.arange(0, D)
    there = pointer + rows[:, None].to(tl.int64) * stride + columns[None, :]
    return tl.load(there, mask=rows[:, None] < n_rows, other=0.0)


@triton.jit
def _scores(asking, asked, of_asking, of_asked, rows, PRECISION: tl.constexpr):
    """Return unscaled scores [A, B] of two blocks, `asking` [A, D] and `asked` [B, D]: queries and keys, or keys and
    queries.

    `of_asking` [A, R] and `of_asked` [B, R] are the products of `asking` and of `asked` with all rows of their position
    tables. `rows` int32 [A, B] is the table row of each pair.
    """
    scores = tl.dot(asking, tl.trans(asked), input_precision=PRECISION)
    scores += tl.gather(of_asking, rows, 1)
    return scores + tl.trans(tl.gather(of_asked, tl.trans(rows), 1))


@triton.jit
def _up_to(sums, last, N: tl.constexpr):
    """Return the elements [A, R] of `sums` at the columns `last` int32 [A, R]. `sums` [A, N] contains the prefix sums
    of A rows.

    The result is 0 where `last` is negative, and the total of the row where `last` is N or more.
    """
    return tl.where(last < 0, 0.0, tl.gather(sums, tl.minimum(tl.maximum(last, 0), N - 1), 1))


@triton.jit
def _visible(mask_pointer, i, j, length, stride_i, stride_j, MASK: tl.constexpr):
    """Return whether query `i` may attend to key `j`. `i` and `j` are broadcast; `mask_pointer` is the mask of one
    sequence.
    """
    keys = j < length
    if MASK == "keys":
        keys = keys & (tl.load(mask_pointer + j * stride_j, mask=keys, other=0) != 0)
    visible = keys & (i < length)
    if MASK == "pairs":
        there = mask_pointer + i.to(tl.int64) * stride_i + j * stride_j
        visible = visible & (tl.load(there, mask=visible, other=0) != 0)
    return visible


@triton.jit
def forward_kernel(
    query_key,
    value,
    position_key,
    position_query,
    row_of_distance,
    mask,
    seed,
    context,
    log_sums,
    length,
    n_rows,
    scale,
    threshold,
    kept_scale,
    table_stride_h,
    table_stride_r,
    mask_stride_b,
    mask_stride_i,
    mask_stride_j,
    H: tl.constexpr,
    D: tl.constexpr,
    R: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    MASK: tl.constexpr,
    DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write the context [B, T, H * D] of a block of M queries of one head, and the queries' softmax denominators (log
    to base 2).

    `query_key` is [B, T, 2 * H * D], `value` [B, T, H * D], each position table [H, n_rows, D].
    """
    n_blocks = tl.cdiv(length, M)
    bh, block = tl.program_id(0) // n_blocks, tl.program_id(0) % n_blocks
    b, h = bh // H, bh % H
    text = query_key + b.to(tl.int64) * length * (2 * H * D) + h * D
    values = value + b.to(tl.int64) * length * (H * D) + h * D
    i, r = block * M + tl.arange(0, M), tl.arange(0, R)
    of_text = mask + b.to(tl.int64) * mask_stride_b
    first, second = _random_keys(seed, bh)
    queries = _tile(text, i, length, 2 * H * D, D)
    keys_of_rows = _tile(position_key + h * table_stride_h, r, n_rows, table_stride_r, D)
    queries_of_rows = _tile(position_query + h * table_stride_h, r, n_rows, table_stride_r, D)
    by_query = tl.dot(queries, tl.trans(keys_of_rows), input_precision=PRECISION)
    highest = tl.full([M], float("-inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    mixed = tl.zeros([M, D], tl.float32)
    for start in range(0, length, N):
        j = start + tl.arange(0, N)
        keys = _tile(text + H * D, j, length, 2 * H * D, D)
        by_key = tl.dot(keys, tl.trans(queries_of_rows), input_precision=PRECISION)
        distance = i[:, None] - j[None, :] + length - 1
        rows = tl.load(row_of_distance + tl.minimum(tl.maximum(distance, 0), 2 * length - 2))
        scores = _scores(queries, keys, by_query, by_key, rows, PRECISION) * (scale * LOG2_E)
        visible = _visible(of_text, i[:, None], j[None, :], length, mask_stride_i, mask_stride_j, MASK)
        scores = tl.where(visible, scores, HIDDEN)
        scores = tl.where(j[None, :] < length, scores, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, 1))
        shrunk = tl.exp2(highest - higher)
        found = tl.exp2(scores - higher[:, None])
        total = total * shrunk + tl.sum(found, 1)
        if DROPOUT:
            found = tl.where(_kept(first, second, i[:, None] * length + j[None, :], threshold), found, 0.0)
        weighed = _tile(values, j, length, H * D, D)
        mixed = mixed * shrunk[:, None] + tl.dot(found.to(weighed.dtype), weighed, input_precision=PRECISION)
        highest = higher
    mixed = mixed * (kept_scale / total)[:, None]
    there = context + b.to(tl.int64) * length * (H * D) + h * D + i[:, None].to(tl.int64) * (H * D)
    tl.store(there + tl.arange(0, D)[None, :], mixed.to(context.dtype.element_ty), mask=i[:, None] < length)
    tl.store(log_sums + bh.to(tl.int64) * length + i, highest + tl.log2(total), mask=i < length)


@triton.jit
def query_gradient_kernel(
    query_key,
    value,
    position_key,
    position_query,
    row_of_distance,
    first_distance,
    mask,
    seed,
    context,
    log_sums,
    gradient,
    deltas,
    query_key_gradient,
    by_query_gradient,
    length,
    n_rows,
    scale,
    threshold,
    kept_scale,
    table_stride_h,
    table_stride_r,
    mask_stride_b,
    mask_stride_i,
    mask_stride_j,
    H: tl.constexpr,
    D: tl.constexpr,
    R: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    MASK: tl.constexpr,
    DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write the gradients of a block of M queries to `query_key_gradient`. Write the gradients of the products of these
    queries with the rows of `position_key` to `by_query_gradient` [B, H, T, R], for B sequences of T tokens.

    `first_distance` int32 [R] contains the smallest distance of each of the `n_rows` rows of `position_key`, and then
    the value T; R > `n_rows`. For each query, this kernel also writes the dot product of its context vector and the
    gradient of this vector to `deltas` [B, H, T].
    """
    n_blocks = tl.cdiv(length, M)
    bh, block = tl.program_id(0) // n_blocks, tl.program_id(0) % n_blocks
    b, h = bh // H, bh % H
    text = query_key + b.to(tl.int64) * length * (2 * H * D) + h * D
    of_head = b.to(tl.int64) * length * (H * D) + h * D
    i, r = block * M + tl.arange(0, M), tl.arange(0, R)
    of_text = mask + b.to(tl.int64) * mask_stride_b
    first, second = _random_keys(seed, bh)
    queries = _tile(text, i, length, 2 * H * D, D)
    keys_of_rows = _tile(position_key + h * table_stride_h, r, n_rows, table_stride_r, D)
    queries_of_rows = _tile(position_query + h * table_stride_h, r, n_rows, table_stride_r, D)
    by_query = tl.dot(queries, tl.trans(keys_of_rows), input_precision=PRECISION)
    incoming = _tile(gradient + of_head, i, length, H * D, D)
    outgoing = _tile(context + of_head, i, length, H * D, D)
    delta = tl.sum(incoming.to(tl.float32) * outgoing.to(tl.float32), 1)
    tl.store(deltas + bh.to(tl.int64) * length + i, delta, mask=i < length)
    log_sum = tl.load(log_sums + bh.to(tl.int64) * length + i, mask=i < length, other=0.0)
    of_row = tl.load(first_distance + r)
    found_gradient = tl.zeros([M, D], tl.float32)
    behind = tl.zeros([M, R], tl.float32)
    for start in range(0, length, N):
        j = start + tl.arange(0, N)
        keys = _tile(text + H * D, j, length, 2 * H * D, D)
        by_key = tl.dot(keys, tl.trans(queries_of_rows), input_precision=PRECISION)
        distance = i[:, None] - j[None, :] + length - 1
        rows = tl.load(row_of_distance + tl.minimum(tl.maximum(distance, 0), 2 * length - 2))
        scores = _scores(queries, keys, by_query, by_key, rows, PRECISION) * (scale * LOG2_E)
        visible = _visible(of_text, i[:, None], j[None, :], length, mask_stride_i, mask_stride_j, MASK)
        found = tl.exp2(tl.where(visible, scores - log_sum[:, None], HIDDEN))
        weighed = _tile(value + of_head, j, length, H * D, D)
        towards = tl.dot(incoming, tl.trans(weighed), input_precision=PRECISION)
        if DROPOUT:
            kept = _kept(first, second, i[:, None] * length + j[None, :], threshold)
            towards = tl.where(kept, towards * kept_scale, 0.0)
        of_scores = found * (towards - delta[:, None])
        found_gradient += tl.dot(of_scores.to(keys.dtype), keys, input_precision=PRECISION)
        # The pair of query i and key j has the distance i - j. Its row of the position table is r or higher exactly if
        # j is at most i - first_distance[r]. `behind` sums the gradients of the keys with these rows.
        behind += _up_to(tl.cumsum(of_scores, 1), i[:, None] - of_row[None, :] - start, N)
    after = tl.gather(behind, tl.zeros([M, R], tl.int32) + tl.minimum(r + 1, R - 1)[None, :], 1)
    by_row = ((behind - after) * scale).to(keys_of_rows.dtype)
    found_gradient = found_gradient * scale + tl.dot(by_row, keys_of_rows, input_precision=PRECISION)
    there = query_key_gradient + b.to(tl.int64) * length * (2 * H * D) + h * D + i[:, None].to(tl.int64) * (2 * H * D)
    tl.store(there + tl.arange(0, D)[None, :], found_gradient.to(query_key.dtype.element_ty), mask=i[:, None] < length)
    there = by_query_gradient + (bh.to(tl.int64) * length + i[:, None]) * R + r[None, :]
    tl.store(there, by_row, mask=i[:, None] < length)


@triton.jit
def key_gradient_kernel(
    query_key,
    value,
    position_key,
    position_query,
    row_of_distance,
    first_distance,
    mask,
    seed,
    log_sums,
    gradient,
    deltas,
    query_key_gradient,
    value_gradient,
    by_key_gradient,
    length,
    n_rows,
    scale,
    threshold,
    kept_scale,
    table_stride_h,
    table_stride_r,
    mask_stride_b,
    mask_stride_i,
    mask_stride_j,
    H: tl.constexpr,
    D: tl.constexpr,
    R: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    MASK: tl.constexpr,
    DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write the gradients of a block of N keys and values, and of the keys' products with the rows of `position_query`.

    Matrices of scores are transposed: [N, M] for a block of N keys and M queries.
    """
    n_blocks = tl.cdiv(length, N)
    bh, block = tl.program_id(0) // n_blocks, tl.program_id(0) % n_blocks
    b, h = bh // H, bh % H
    text = query_key + b.to(tl.int64) * length * (2 * H * D) + h * D
    of_head = b.to(tl.int64) * length * (H * D) + h * D
    j, r = block * N + tl.arange(0, N), tl.arange(0, R)
    of_text = mask + b.to(tl.int64) * mask_stride_b
    first, second = _random_keys(seed, bh)
    keys = _tile(text + H * D, j, length, 2 * H * D, D)
    weighed = _tile(value + of_head, j, length, H * D, D)
    keys_of_rows = _tile(position_key + h * table_stride_h, r, n_rows, table_stride_r, D)
    queries_of_rows = _tile(position_query + h * table_stride_h, r, n_rows, table_stride_r, D)
    by_key = tl.dot(keys, tl.trans(queries_of_rows), input_precision=PRECISION)
    of_row = tl.load(first_distance + r)
    key_found = tl.zeros([N, D], tl.float32)
    value_found = tl.zeros([N, D], tl.float32)
    before = tl.zeros([N, R], tl.float32)
    for start in range(0, length, M):
        i = start + tl.arange(0, M)
        queries = _tile(text, i, length, 2 * H * D, D)
        incoming = _tile(gradient + of_head, i, length, H * D, D)
        log_sum = tl.load(log_sums + bh.to(tl.int64) * length + i, mask=i < length, other=0.0)
        delta = tl.load(deltas + bh.to(tl.int64) * length + i, mask=i < length, other=0.0)
        by_query = tl.dot(queries, tl.trans(keys_of_rows), input_precision=PRECISION)
        distance = i[None, :] - j[:, None] + length - 1
        rows = tl.load(row_of_distance + tl.minimum(tl.maximum(distance, 0), 2 * length - 2))
        scores = _scores(keys, queries, by_key, by_query, rows, PRECISION) * (scale * LOG2_E)
        visible = _visible(of_text, i[None, :], j[:, None], length, mask_stride_i, mask_stride_j, MASK)
        found = tl.exp2(tl.where(visible, scores - log_sum[None, :], HIDDEN))
        towards = tl.dot(weighed, tl.trans(incoming), input_precision=PRECISION)
        dropped = found
        if DROPOUT:
            kept = _kept(first, second, i[None, :] * length + j[:, None], threshold)
            towards = tl.where(kept, towards * kept_scale, 0.0)
            dropped = tl.where(kept, found * kept_scale, 0.0)
        value_found += tl.dot(dropped.to(incoming.dtype), incoming, input_precision=PRECISION)
        of_scores = found * (towards - delta[None, :])
        key_found += tl.dot(of_scores.to(queries.dtype), queries, input_precision=PRECISION)
        # For key j, the queries before position j + first_distance[r] have a row below r in the position table.
        before += _up_to(tl.cumsum(of_scores, 1), j[:, None] + of_row[None, :] - 1 - start, M)
    after = tl.gather(before, tl.zeros([N, R], tl.int32) + tl.minimum(r + 1, R - 1)[None, :], 1)
    by_row = ((after - before) * scale).to(keys.dtype)
    key_found = key_found * scale + tl.dot(by_row, queries_of_rows, input_precision=PRECISION)
    there = j[:, None].to(tl.int64) * (H * D) + tl.arange(0, D)[None, :]
    inside = j[:, None] < length
    tl.store(value_gradient + of_head + there, value_found.to(value.dtype.element_ty), mask=inside)
    there = query_key_gradient + b.to(tl.int64) * length * (2 * H * D) + h * D + H * D
    there += j[:, None].to(tl.int64) * (2 * H * D) + tl.arange(0, D)[None, :]
    tl.store(there, key_found.to(query_key.dtype.element_ty), mask=inside)
    there = by_key_gradient + (bh.to(tl.int64) * length + j[:, None]) * R + r[None, :]
    tl.store(there, by_row, mask=inside)
