package redistest

import "slices"

// maxLog bounds the log of requests behind Count and Commands.
const maxLog = 1 << 16

// record logs a request. It is called before the request is forwarded, so a
// client that has its reply finds it counted.
func (p *Proxy) record(cmd []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.log) < maxLog {
		p.log = append(p.log, cmd)
	} else {
		p.overflow = true
	}
}

// Record empties the log, so that Commands and Count speak only of requests
// forwarded from now on.
func (p *Proxy) Record() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log, p.overflow = nil, false
}

// Commands returns the requests forwarded since Record, or since the start, in
// order, but no more than the first 65536.
func (p *Proxy) Commands() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	cmds := slices.Clone(p.log)
	for i := range cmds {
		cmds[i] = slices.Clone(cmds[i])
	}
	return cmds
}

// Count returns how many requests that match were forwarded since Record, or
// since the start. It fails the test if there were too many to remember.
func (p *Proxy) Count(m Match) int64 {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.overflow {
		p.tb.Fatalf("redistest: proxy: more than %d requests since Record: the count would be wrong", maxLog)
	}
	var n int64
	for _, cmd := range p.log {
		if m(cmd) {
			n++
		}
	}
	return n
}
