package load

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/edsrzf/mmap-go"
)

// page is the memory that all processes of a measurement share. It leads them through
// warm-up, measurement and end at the same moment, and it has what the lock protects:
// a counter without protection of its own. Where two are inside at once, an increment
// gets lost. All is atomic for the race detector and the Java program; a lock in Redis
// orders nothing that either knows of.
//
// Each word has a cache line of its own, and bench/redisson has the same numbers.
type page struct {
	words *[pageWords]atomic.Int64
	file  string // empty: the memory of this process
	mem   mmap.MMap
}

const (
	pageWords = 64

	wordCount    = 0  // passes through the section that wrote
	wordPhase    = 8  // warming, measuring or stopped
	wordProgress = 16 // pairs of Lock and Unlock, in all phases
	wordReleased = 24 // when the lock was last given back, by the wall clock
	wordReleaser = 32 // the process that did, from 1
	wordReaders  = 40 // how many of those who read are inside
)

const (
	warming int64 = iota
	measuring
	stopped
)

func newPage() *page { return &page{words: new([pageWords]atomic.Int64)} }

// createPage returns a page that others can open by its file.
func createPage() (*page, error) {
	f, err := os.CreateTemp("", "holdfast-bench-page-")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(unsafe.Sizeof([pageWords]atomic.Int64{}))); err != nil {
		return nil, err
	}
	return mapPage(f)
}

func openPage(file string) (*page, error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return mapPage(f)
}

func mapPage(f *os.File) (*page, error) {
	m, err := mmap.Map(f, mmap.RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return &page{words: (*[pageWords]atomic.Int64)(unsafe.Pointer(&m[0])), file: f.Name(), mem: m}, nil
}

func (p *page) close() error {
	if p.mem == nil {
		return nil
	}
	return p.mem.Unmap()
}

func (p *page) phase() int64 { return p.words[wordPhase].Load() }

// write goes through the section, and works in it for hold. Without work it lets
// others run inside every so often: on one core they would hardly ever get the chance.
func (p *page) write(hold time.Duration) {
	n := p.words[wordCount].Load()
	inside(n, hold)
	p.words[wordCount].Store(n + 1)
}

// read goes through the section beside other readers, and reports whether no writer
// was inside, and no more readers than most.
func (p *page) read(turn int64, hold time.Duration, most int64) bool {
	n := p.words[wordCount].Load()
	readers := p.words[wordReaders].Add(1)
	inside(turn, hold)
	p.words[wordReaders].Add(-1)
	return p.words[wordCount].Load() == n && readers <= most
}

func inside(turn int64, hold time.Duration) {
	switch {
	case hold > 0:
		time.Sleep(hold)
	case turn%32 == 0:
		yield()
	}
}

// released notes that process is about to give the lock back, and handover returns how
// long ago that was, if it was another.
func (p *page) released(process int64) {
	p.words[wordReleaser].Store(process)
	p.words[wordReleased].Store(time.Now().UnixNano())
}

func (p *page) handover(process int64) (time.Duration, bool) {
	from, at := p.words[wordReleaser].Load(), p.words[wordReleased].Load()
	return time.Duration(time.Now().UnixNano() - at), from != 0 && from != process
}
