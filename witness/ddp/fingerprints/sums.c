/* What are the sums of many tensors, read once from memory?

   The meaning is that of reference.py. Everything is modulo 2^64, so the order of additions is free.

   A row is read in steps of a few vectors, whose lanes are split into four streams of elements. Each
   lane of a stream keeps a, the sum of its elements, and h, the sum of all a so far: after T steps
   h = sum of (T - t) * b_t, hence the sum of t * b_t is T * a - h, and no element needs a
   multiplication. Elements with a sign are read as b + BIAS >= 0, which needs no sign extension; what
   that adds is taken away at the end. Narrow lanes are emptied before they could overflow. */

#include <stdint.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

/* Unaligned, and allowed to read what was written as anything. */
typedef uint32_t lanes_32 __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint64_t lanes_64 __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint16_t any_2 __attribute__((aligned(1), may_alias));
typedef uint32_t any_4 __attribute__((aligned(1), may_alias));
typedef uint64_t any_8 __attribute__((aligned(1), may_alias));

#define STREAMS 4
/* All three sums take a part after the other: the third finds in the cache what the first two read. */
#define PART_BYTES 16384
#define AHEAD_BYTES 1024

/* 1 + 2 + ... + n modulo 2^64. */
static uint64_t triangle(uint64_t n)
{
    return n % 2 ? (n + 1) / 2 * n : n / 2 * (n + 1);
}

/* PER_LANE elements in each of LANES lanes of VECTOR; STEPS: after how many to empty the lanes;
   S0 ... S3: the streams, from the vectors x[0], x[1], ... each of them xor FLIP. */
#define DEFINE_ROW_SUMS(NAME, ELEMENT, VECTOR, LANES, PER_LANE, STEPS, BIAS, FLIP, S0, S1, S2, S3)\
    static void NAME(const unsigned char *data, uint64_t count, uint64_t first, uint64_t *out)    \
    {                                                                                             \
        const uint64_t stride = STREAMS * LANES;                                                  \
        uint64_t plain = 0, weighted = 0, left = count, next = first;                             \
        while (left >= stride) {                                                                  \
            const uint64_t most = left / stride, steps = most < STEPS ? most : STEPS;             \
            const VECTOR *x = (const VECTOR *)data;                                               \
            VECTOR a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, h0 = {0}, h1 = {0}, h2 = {0}, h3 = {0};\
            for (uint64_t t = 0; t < steps; t++, x += STREAMS / PER_LANE) {                       \
                /* The processor's own look-ahead keeps up only with the widest elements. */      \
                if (PER_LANE > 1)                                                                 \
                    __builtin_prefetch((const char *)x + AHEAD_BYTES);                            \
                a0 += S0;                                                                         \
                a1 += S1;                                                                         \
                a2 += S2;                                                                         \
                a3 += S3;                                                                         \
                h0 += a0;                                                                         \
                h1 += a1;                                                                         \
                h2 += a2;                                                                         \
                h3 += a3;                                                                         \
            }                                                                                     \
            const VECTOR a[STREAMS] = {a0, a1, a2, a3}, h[STREAMS] = {h0, h1, h2, h3};            \
            for (uint64_t stream = 0; stream < STREAMS; stream++)                                 \
                for (uint64_t lane = 0; lane < LANES; lane++) {                                   \
                    const uint64_t sum = a[stream][lane], later = h[stream][lane];                \
                    const uint64_t place = (stream / PER_LANE * LANES + lane) * PER_LANE;         \
                    plain += sum;                                                                 \
                    weighted += (next + place + stream % PER_LANE + 1) * sum;                     \
                    weighted += stride * (steps * sum - later);                                   \
                }                                                                                 \
            data += steps * stride * sizeof(ELEMENT);                                             \
            next += steps * stride;                                                               \
            left -= steps * stride;                                                               \
        }                                                                                         \
        for (uint64_t i = 0; i < left; i++) {                                                     \
            const uint64_t element = (ELEMENT)(((const ELEMENT *)data)[i] ^ (ELEMENT)FLIP);       \
            plain += element;                                                                     \
            weighted += (next + i + 1) * element;                                                 \
        }                                                                                         \
        out[0] += plain - (uint64_t)BIAS * count;                                                 \
        out[1] += weighted - (uint64_t)BIAS * (first * count + triangle(count));                  \
    }

/* Lanes overflow no earlier than the steps that keep 255 or 65535 * T * (T + 1) / 2 below 2^32. */
DEFINE_ROW_SUMS(sums_of_1, unsigned char, lanes_32, 8, 4, 4096, 0, 0,
                (x[0] & 0xFF), (x[0] >> 8 & 0xFF), (x[0] >> 16 & 0xFF), (x[0] >> 24))
DEFINE_ROW_SUMS(sums_of_2, any_2, lanes_32, 8, 2, 256, 0x8000, 0x8000,
                ((x[0] ^ 0x80008000) & 0xFFFF), ((x[0] ^ 0x80008000) >> 16),
                ((x[1] ^ 0x80008000) & 0xFFFF), ((x[1] ^ 0x80008000) >> 16))
DEFINE_ROW_SUMS(sums_of_4, any_4, lanes_64, 4, 2, UINT64_MAX, 0x80000000, 0x80000000,
                ((x[0] ^ 0x8000000080000000) & 0xFFFFFFFF), ((x[0] ^ 0x8000000080000000) >> 32),
                ((x[1] ^ 0x8000000080000000) & 0xFFFFFFFF), ((x[1] ^ 0x8000000080000000) >> 32))
DEFINE_ROW_SUMS(sums_of_8, any_8, lanes_64, 4, 1, UINT64_MAX, 0, 0, x[0], x[1], x[2], x[3])

static uint64_t mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

#define M1 0x85EBCA6Bu
#define M2 0xC2B2AE35u

static int32_t weight(uint32_t low, uint32_t low_key, uint32_t high_key)
{
    uint32_t x = low + low_key;
    x ^= x >> 16;
    x *= M1;
    x ^= x >> 13;
    x += high_key;
    x *= M2;
    x ^= x >> 16;
    return (int32_t)x;
}

/* The third sum of whole words whose index has the same upper 32 bits. */
static uint64_t keyed_words(const unsigned char *data, uint32_t count, uint64_t first, uint64_t key)
{
    const uint64_t keys = mix64(key + ((first >> 32) + 1) * 0x9E3779B97F4A7C15u);
    const uint32_t low = (uint32_t)first, low_key = (uint32_t)keys;
    const uint32_t high_key = (uint32_t)(keys >> 32);
    uint64_t sum = 0;
    uint32_t k = 0;
#ifdef __AVX2__
    /* What a compiler makes of the loop below spends as much on moving lanes as on the weights. */
    __m256i x = _mm256_add_epi32(_mm256_set1_epi32((int)(low + low_key)),
                                 _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i eight = _mm256_set1_epi32(8), half = _mm256_set1_epi32((int)high_key);
    const __m256i m1 = _mm256_set1_epi32((int)M1), m2 = _mm256_set1_epi32((int)M2);
    __m256i even = _mm256_setzero_si256(), odd = even;
    for (; count - k >= 8; k += 8) {
        const unsigned char *at = data + (uint64_t)k * 4;
        const __m256i u = _mm256_loadu_si256((const __m256i *)at);
        /* Memory would wait here while the weights are made: have it fetch the next part. */
        __builtin_prefetch(at + PART_BYTES);
        __m256i w = _mm256_mullo_epi32(_mm256_xor_si256(x, _mm256_srli_epi32(x, 16)), m1);
        w = _mm256_add_epi32(_mm256_xor_si256(w, _mm256_srli_epi32(w, 13)), half);
        w = _mm256_mullo_epi32(w, m2);
        w = _mm256_xor_si256(w, _mm256_srli_epi32(w, 16));
        even = _mm256_add_epi64(even, _mm256_mul_epi32(u, w));
        odd = _mm256_add_epi64(
            odd, _mm256_mul_epi32(_mm256_srli_epi64(u, 32), _mm256_srli_epi64(w, 32)));
        x = _mm256_add_epi32(x, eight);
    }
    const lanes_64 both = (lanes_64)even + (lanes_64)odd;
    sum = both[0] + both[1] + both[2] + both[3];
#endif
    for (; k < count; k++) {
        const int64_t word = (int32_t)((const any_4 *)data)[k];
        sum += (uint64_t)(word * weight(low + k, low_key, high_key));
    }
    return sum;
}

static uint64_t keyed(const unsigned char *data, uint64_t bytes, uint64_t first, uint64_t key)
{
    uint64_t words = bytes / 4, sum = 0;
    unsigned char last[4] = {0};
    while (words > 0) {
        uint64_t count = ((uint64_t)1 << 32) - (uint32_t)first;
        if (count > words)
            count = words;
        if (count > UINT32_MAX)
            count = UINT32_MAX;
        sum += keyed_words(data, (uint32_t)count, first, key);
        data += count * 4;
        first += count;
        words -= count;
    }
    if (bytes % 4 == 0)
        return sum;
    for (uint64_t i = 0; i < bytes % 4; i++)
        last[i] = data[i];
    return sum + keyed_words(last, 1, first, key);
}

/* Columns of the table: address, element count, element size, index of the first element, row of
   `out`. Adds to `out`, [rows, version + 1]. */
#define COLUMNS 5

void witness_sums(const int64_t *table, int64_t rows, int64_t version, uint64_t key, uint64_t *out)
{
    for (int64_t row = 0; row < rows; row++, table += COLUMNS) {
        const unsigned char *data = (const unsigned char *)(uintptr_t)table[0];
        uint64_t left = (uint64_t)table[1], size = (uint64_t)table[2], first = (uint64_t)table[3];
        uint64_t *sums = out + table[4] * (version + 1);
        while (left > 0) {
            uint64_t count = version == 1 ? left : PART_BYTES / size;
            if (count > left)
                count = left;
            switch (size) {
            case 1: sums_of_1(data, count, first, sums); break;
            case 2: sums_of_2(data, count, first, sums); break;
            case 4: sums_of_4(data, count, first, sums); break;
            default: sums_of_8(data, count, first, sums); break;
            }
            if (version == 2) {
                /* Not by way of bytes, whose count may not fit where that of words does. */
                uint64_t word = size < 4 ? first / (4 / size) : first * (size / 4);
                sums[2] += keyed(data, count * size, word, key);
            }
            data += count * size;
            first += count;
            left -= count;
        }
    }
}
