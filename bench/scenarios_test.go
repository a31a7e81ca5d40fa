package bench

import "testing"

// Each scenario is a benchmark too. Two holders at once fail any of them.

func BenchmarkFloors(b *testing.B)      { benchmark(b, floors) }
func BenchmarkUncontended(b *testing.B) { benchmark(b, uncontended) }
func BenchmarkDistinct(b *testing.B)    { benchmark(b, distinct) }
func BenchmarkOneName(b *testing.B)     { benchmark(b, oneName) }
func BenchmarkProcesses(b *testing.B)   { benchmark(b, processes) }
func BenchmarkHandover(b *testing.B)    { benchmark(b, handover) }
func BenchmarkQueue(b *testing.B)       { benchmark(b, queue) }
func BenchmarkFair(b *testing.B)        { benchmark(b, fair) }
func BenchmarkReaders(b *testing.B)     { benchmark(b, readers) }
func BenchmarkLinger(b *testing.B)      { benchmark(b, linger) }
func BenchmarkHeld(b *testing.B)        { benchmark(b, held) }
func BenchmarkParked(b *testing.B)      { benchmark(b, parked) }
