package bench

import "testing"

// BenchmarkParked is many goroutines that wait for what another client holds.
func BenchmarkParked(b *testing.B) { benchmark(b, parked) }

// BenchmarkParkedAsync is the same without goroutines.
func BenchmarkParkedAsync(b *testing.B) { benchmark(b, parkedAsync) }
