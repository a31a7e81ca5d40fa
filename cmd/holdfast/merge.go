package main

import (
	"cmp"
	"slices"
	"time"
)

// merge makes one look at each lock of what the servers of a Redlock know. found has the looks of each of the sites.
func merge(found [][]look, sites []*site, lease time.Duration) (all []look) {
	parts := make(map[string][]look) // by name
	for i, looks := range found {
		for _, l := range looks {
			l.Server = sites[i].name
			parts[l.Name] = append(parts[l.Name], l)
		}
	}
	for _, of := range parts {
		all = append(all, joined(of, len(sites), lease))
	}
	return all
}

// joined is what the parts say together. A majority holds the lock until as many of the TTLs are over as leave none.
func joined(parts []look, of int, lease time.Duration) look {
	l := parts[0]
	l.Server, l.of, l.Holders, l.Broken, l.More, l.Token = "", of, []lookHolder{}, nil, 0, 0 // servers have no common token
	processes := make(map[string]int)
	var ttls []int64
	for _, p := range parts {
		if p.Held {
			l.Servers = append(l.Servers, p.Server)
			ttls = append(ttls, p.TTL)
		}
		for _, h := range p.Holders {
			h.Server = p.Server
			l.Holders = append(l.Holders, h)
			processes[h.who()]++
		}
		l.More += p.More
		l.Waiting, l.Inside, l.Overdue = max(l.Waiting, p.Waiting), max(l.Inside, p.Inside), max(l.Overdue, p.Overdue)
		l.Broken = append(l.Broken, p.Broken...)
	}
	slices.SortStableFunc(l.Holders, func(a, b lookHolder) int { return cmp.Compare(processes[b.who()], processes[a.who()]) })
	most := of/2 + 1
	if l.Held = len(ttls) >= most; len(ttls) > 0 {
		slices.Sort(ttls)
		l.TTL = ttls[max(len(ttls)-most, 0)]
		if ttls[0] < 0 { // without a TTL: at that server it is held for good
			l.TTL = -1
		}
	}
	l.judge(lease)
	return l
}

// who tells holders apart. A process has another owner id at each server of a Redlock, so there the process counts if it
// says what it is.
func (h lookHolder) who() string {
	if h.Server != "" && h.Process != nil {
		return h.Process.String()
	}
	return h.Owner
}
