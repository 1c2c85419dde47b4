// Reductions of rows, and the matrix product. Text of elementwise.cpp, which includes it once for each
// instruction set, in that one's namespace.

template <class Op>
HWY_INLINE float fold(const float* a, int64_t n, float identity) {
  constexpr int kWays = 64;  // independent chains enough for any vector width
  if (n < kWays) {
    float r = identity;
    for (int64_t i = 0; i < n; ++i) r = Op::apply(r, a[i]);
    return r;
  }
  float part[kWays];
  for (int j = 0; j < kWays; ++j) part[j] = a[j];
  int64_t i = kWays;
  for (; i + kWays <= n; i += kWays)
    for (int j = 0; j < kWays; ++j) part[j] = Op::apply(part[j], a[i + j]);
  for (; i < n; ++i) part[0] = Op::apply(part[0], a[i]);
  for (int w = kWays / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) part[j] = Op::apply(part[j], part[j + w]);
  return part[0];
}
float SumF32(const float* a, int64_t n) { return fold<AddOp>(a, n, 0.0f); }
float MaxF32(const float* a, int64_t n) { return n == 0 ? 0 : fold<MaxnumOp>(a, n, a[0]); }
float MinF32(const float* a, int64_t n) { return n == 0 ? 0 : fold<MinnumOp>(a, n, a[0]); }

// One block of kRows x (2 vectors) of c stays in registers for all of k.
template <int kRows, class D>
HWY_INLINE void micro(D d, const float* HWY_RESTRICT a, int64_t lda, const float* HWY_RESTRICT b, int64_t ldb,
                      float* HWY_RESTRICT c, int64_t ldc, int64_t k) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> acc[kRows][2];
  for (int r = 0; r < kRows; ++r) {
    acc[r][0] = hn::LoadU(d, c + r * ldc);
    acc[r][1] = hn::LoadU(d, c + r * ldc + lanes);
  }
  for (int64_t p = 0; p < k; ++p) {
    const auto b0 = hn::LoadU(d, b + p * ldb);
    const auto b1 = hn::LoadU(d, b + p * ldb + lanes);
    for (int r = 0; r < kRows; ++r) {
      const auto v = hn::Set(d, a[r * lda + p]);
      acc[r][0] = hn::MulAdd(v, b0, acc[r][0]);
      acc[r][1] = hn::MulAdd(v, b1, acc[r][1]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    hn::StoreU(acc[r][0], d, c + r * ldc);
    hn::StoreU(acc[r][1], d, c + r * ldc + lanes);
  }
}
void MatmulF32(const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc, int64_t m,
               int64_t n, int64_t k) {
  const hn::ScalableTag<float> d;
  const auto width = 2 * static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + width <= n; j += width) {
    int64_t i = 0;
    for (; i + 6 <= m; i += 6) micro<6>(d, a + i * lda, lda, b + j, ldb, c + i * ldc + j, ldc, k);
    for (; i + 4 <= m; i += 4) micro<4>(d, a + i * lda, lda, b + j, ldb, c + i * ldc + j, ldc, k);
    for (; i < m; ++i) micro<1>(d, a + i * lda, lda, b + j, ldb, c + i * ldc + j, ldc, k);
  }
  if (j < n) {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p) {
        const float v = a[i * lda + p];
        for (int64_t q = j; q < n; ++q) c[i * ldc + q] = std::fma(v, b[p * ldb + q], c[i * ldc + q]);
      }
  }
}
