package bench

import "testing"

// BenchmarkOneName is many goroutines with one lock. Two holders at once fail it.
func BenchmarkOneName(b *testing.B) { benchmark(b, oneName) }
