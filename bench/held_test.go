package bench

import "testing"

// BenchmarkHeld is many locks that are held.
func BenchmarkHeld(b *testing.B) { benchmark(b, held) }
