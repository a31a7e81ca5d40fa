package command

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Calls of one script that wait in a lane at the same time go as one command: the form of the script for many
// (scripts/form/many.lua) runs it for each of them, and gives the reply to each in an array. Callers see no difference: each call
// has its own reply, or its own error. What Redis says of the whole command it need not say of each call, such as that one of
// many keys is denied. So if it has run nothing, each call is sent by itself, and merging pauses.

const (
	// mergeFrom is how many calls are merged at least: with fewer the form costs about as much as it saves.
	mergeFrom = 4
	// mergeMost is how many are merged at most: more would save little.
	mergeMost = 64
	// mergeWords is how many keys and arguments a call that is merged has at most: one with more takes long by itself.
	mergeWords = 16
	// mergeName is the length of names, in bytes, beyond which fewer calls are merged: what a call takes grows with the names in it.
	// Measured, 64 calls with names of 16, 256 and 1,024 bytes: 350, 530 and 1,200 µs, on a machine that was busy; 8 with names of
	// 1,000 bytes, on a quiet one: 175 µs.
	mergeName = 128
	// mergeKinds bounds the search for calls that go together.
	mergeKinds = 16
	// mergePause is how long nothing is merged after Redis did not take a merged command.
	mergePause = time.Second
)

// For how long one command keeps the server from other clients. Redis does not say how long a call took it, but how the
// reply looks does: a number is the end of a short way, such as that of a lock that is free or of a release without waiters.
const (
	mergeFor = 200 * time.Microsecond
	shortWay = 3 * time.Microsecond  // measured: 2
	longWay  = 13 * time.Microsecond // measured: 9 to 13
)

// Together returns how many names of up to so many bytes go into one command, if most of usual length do.
func Together(most, longest int) int { return most * mergeName / max(mergeName, longest) }

// bundle is what goes as one command: one call, or several of one script.
type bundle struct {
	script *Script // that of the calls, or its form for many
	calls  []*Call // not empty
}

func (b *bundle) merged() bool { return len(b.calls) > 1 }

// args returns a copy of the arguments for the command, those of a lone call in the room of the command.
func (b *bundle) args(room *Room) []any {
	first := b.calls[0].Args
	if !b.merged() {
		return append(room[:0], first...)
	}
	width := first[argNumKeys].(int)
	ends := argFirstKey + width
	shape := []byte(strings.Repeat("=", len(first)-ends))
	own := 0
	for i := range shape {
		if slices.ContainsFunc(b.calls, func(c *Call) bool { return c.Args[ends+i] != first[ends+i] }) {
			shape[i] = '-'
			own++
		}
	}
	n := len(b.calls)
	all := make([]any, 0, argFirstKey+n*(width+own)+2+len(shape)-own)
	all = append(all, evalsha, b.script.sha, n*width)
	for _, c := range b.calls {
		all = append(all, c.Args[argFirstKey:ends]...)
	}
	all = append(all, width, string(shape))
	for i, sign := range shape {
		if sign == '=' {
			all = append(all, first[ends+i])
		}
	}
	for _, c := range b.calls {
		for i, sign := range shape {
			if sign == '-' {
				all = append(all, c.Args[ends+i])
			}
		}
	}
	return all
}

// fits reports whether value can be the reply to the command.
func (b *bundle) fits(value any) bool {
	fits := b.calls[0].Script.fits
	if !b.merged() {
		return fits == nil || fits(value)
	}
	replies, failures, ok := b.parts(value)
	return ok && (fits == nil || !slices.ContainsFunc(replies, func(v any) bool { return v != nil && !fits(v) })) &&
		!slices.ContainsFunc(failures, func(f failure) bool { return f.call < 0 || f.call >= len(replies) || replies[f.call] != nil })
}

// failure is the error of a call.
type failure struct {
	call int
	err  scriptError
}

// scriptError is what Redis says of one of many calls.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError makes it one of go-redis's errors.
func (scriptError) RedisError() {}

// parts takes the reply to a merged command apart: nil is the reply to a call that has failed.
func (b *bundle) parts(value any) (replies []any, failures []failure, ok bool) {
	n := len(b.calls)
	list, _ := value.([]any)
	if len(list) != n+1 {
		return nil, nil, false
	}
	pairs, ok := list[n].([]any)
	for ; ok && len(pairs) > 0; pairs = pairs[2:] {
		if len(pairs) == 1 {
			return nil, nil, false
		}
		call, isNumber := pairs[0].(int64)
		text, isText := pairs[1].(string)
		failures = append(failures, failure{int(call) - 1, scriptError(text)})
		ok = isNumber && isText
	}
	return list[:n], failures, ok
}

// kind is what calls have in common that can be merged.
type kind struct {
	script      *Script
	keys, words int
	tag         string // in a cluster: what its slot comes from
}

// kindOf returns the kind of a call; false: it is not merged.
func kindOf(c *Call, cluster bool) (kind, bool) {
	k := kind{script: c.Script, keys: c.Args[argNumKeys].(int), words: len(c.Args)}
	if c.Script.many == nil || k.keys == 0 || k.words-argFirstKey > mergeWords {
		return k, false
	}
	if !cluster {
		return k, true
	}
	key := c.key()
	from := strings.IndexByte(key, '{') + 1
	if length := strings.IndexByte(key[from:], '}'); from > 0 && length > 0 {
		k.tag = key[from : from+length]
		return k, true
	}
	return k, false // its slot is most likely not that of another one
}

// merger divides batches into bundles. It belongs to a lane, which uses its memory for the next batch again.
type merger struct {
	most    map[*Script]int // by forms for many: how many calls one command has, as far as is known
	kinds   []kind
	of      []int   // the index of each call's kind, and 1; 0: it is not merged
	end     []int   // likewise, where the calls of a kind end in sorted
	sorted  []*Call // by their kinds
	bundles []bundle
}

// apart returns a bundle for each call.
func (m *merger) apart(calls []*Call) []bundle {
	m.bundles = m.bundles[:0]
	for i, c := range calls {
		m.bundles = append(m.bundles, bundle{c.Script, calls[i : i+1]})
	}
	return m.bundles
}

// divide returns bundles with all of the calls.
func (m *merger) divide(calls []*Call, cluster bool) []bundle {
	if len(calls) < mergeFrom {
		return m.apart(calls)
	}
	m.kinds, m.of, m.end = m.kinds[:0], m.of[:0], append(m.end[:0], 0)
	for _, c := range calls {
		at := -1
		if k, merges := kindOf(c, cluster); merges {
			if at = slices.Index(m.kinds, k); at < 0 && len(m.kinds) < mergeKinds {
				at = len(m.kinds)
				m.kinds, m.end = append(m.kinds, k), append(m.end, 0)
			}
		}
		m.of = append(m.of, at+1)
		m.end[at+1]++
	}
	m.sorted = slices.Grow(m.sorted[:0], len(calls))[:len(calls)]
	sum := 0
	for k, n := range m.end {
		m.end[k], sum = sum, sum+n
	}
	for i, c := range calls {
		m.sorted[m.end[m.of[i]]] = c
		m.end[m.of[i]]++
	}
	m.bundles = m.bundles[:0]
	begin := 0
	for k, end := range m.end {
		some := m.sorted[begin:end]
		begin = end
		if k == 0 || len(some) < mergeFrom {
			for i, c := range some {
				m.bundles = append(m.bundles, bundle{c.Script, some[i : i+1]})
			}
			continue
		}
		form := m.kinds[k-1].script.many
		longest := 0
		for _, c := range some {
			longest = max(longest, len(c.key()))
		}
		most := max(mergeFrom, Together(cmp.Or(m.most[form], int(mergeFor/longWay)), longest))
		for parts := (len(some) + most - 1) / most; parts > 0; parts-- {
			n := len(some) / parts
			m.bundles = append(m.bundles, bundle{form, some[:n:n]})
			some = some[n:]
		}
	}
	return m.bundles
}

// learn takes note of the replies to merged calls.
func (m *merger) learn(b *bundle, replies []any) {
	took := time.Duration(0)
	for _, r := range replies {
		if _, number := r.(int64); number {
			took += shortWay
		} else {
			took += longWay
		}
	}
	if m.most == nil {
		m.most = make(map[*Script]int)
	}
	m.most[b.script] = min(int(time.Duration(len(replies))*mergeFor/took), mergeMost)
}
