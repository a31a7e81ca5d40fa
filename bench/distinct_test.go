package bench

import "testing"

// BenchmarkDistinct is many goroutines with a lock each.
func BenchmarkDistinct(b *testing.B) { benchmark(b, distinct) }
