package bench

import "testing"

// Each scenario is a benchmark too; those that count operations in a way of their own
// have files of their own. Two holders at once fail any of them.

func BenchmarkFloors(b *testing.B)    { benchmark(b, floors) }
func BenchmarkDistinct(b *testing.B)  { benchmark(b, distinct) }
func BenchmarkOneName(b *testing.B)   { benchmark(b, oneName) }
func BenchmarkProcesses(b *testing.B) { benchmark(b, processes) }
func BenchmarkHandover(b *testing.B)  { benchmark(b, handover) }
func BenchmarkQueue(b *testing.B)     { benchmark(b, queue) }
func BenchmarkModes(b *testing.B)     { benchmark(b, modes) }
func BenchmarkFair(b *testing.B)      { benchmark(b, fair) }
func BenchmarkReaders(b *testing.B)   { benchmark(b, readers) }
func BenchmarkWriter(b *testing.B)    { benchmark(b, writer) }
func BenchmarkRecipes(b *testing.B)   { benchmark(b, recipes) }
func BenchmarkLinger(b *testing.B)    { benchmark(b, linger) }
func BenchmarkRedlock(b *testing.B)   { benchmark(b, redlock) }
func BenchmarkHeld(b *testing.B)      { benchmark(b, held) }
func BenchmarkParked(b *testing.B)    { benchmark(b, parked) }

// BenchmarkParkedAsync has no goroutine for each that waits.
func BenchmarkParkedAsync(b *testing.B) { benchmark(b, parkedAsync) }
