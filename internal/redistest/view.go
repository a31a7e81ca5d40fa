package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// view is what one node believes of its cluster, from CLUSTER INFO and CLUSTER NODES.
type view struct {
	ok      bool // it serves
	members []member
}

type member struct {
	id     string
	flags  []string
	master string // id of the master that it replicates; "-": none
	slots  [][2]int
}

// views passes what each running node believes to check, until that fails.
func (c *Cluster) views(check func(view) error) error {
	for _, n := range c.nodes {
		if !n.running() {
			continue
		}
		v, err := readView(n)
		if err == nil {
			err = check(v)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", n.addr, err)
		}
	}
	return nil
}

func readView(n *Server) (view, error) {
	info, err := n.try("cluster", "info")
	if err != nil {
		return view{}, err
	}
	nodes, err := n.try("cluster", "nodes")
	if err != nil {
		return view{}, err
	}
	v := view{ok: infoField(info.(string), "cluster_state") == "ok"}
	for line := range strings.Lines(nodes.(string)) {
		m, err := parseMember(line)
		if err != nil {
			return view{}, err
		}
		v.members = append(v.members, m)
	}
	return v, nil
}

// parseMember reads a line such as
//
//	<id> 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-5460 [5461->-<id>]
func parseMember(line string) (member, error) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return member{}, fmt.Errorf("a short line: %q", line)
	}
	m := member{id: f[0], flags: strings.Split(f[2], ","), master: f[3]}
	for _, s := range f[8:] {
		if strings.HasPrefix(s, "[") { // a slot that is being moved: its owner has it listed as well
			continue
		}
		first, last, isRange := strings.Cut(s, "-")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil {
			return member{}, fmt.Errorf("slots %q", s)
		}
		m.slots = append(m.slots, [2]int{lo, hi})
	}
	return m, nil
}

func (m member) is(flag string) bool { return slices.Contains(m.flags, flag) }

// owner returns the id of the slot's owner, "" if there is none.
func (v view) owner(slot int) string {
	for _, m := range v.members {
		for _, r := range m.slots {
			if r[0] <= slot && slot <= r[1] {
				return m.id
			}
		}
	}
	return ""
}

func (v view) owners() map[int]string {
	all := make(map[int]string, clusterSlots)
	for _, m := range v.members {
		for _, r := range m.slots {
			for slot := r[0]; slot <= r[1]; slot++ {
				all[slot] = m.id
			}
		}
	}
	return all
}

// noneUnknown fails while a member is known by its address only.
func (v view) noneUnknown() error {
	for _, m := range v.members {
		if m.is("handshake") || m.is("noaddr") {
			return fmt.Errorf("handshake with %s", m.id)
		}
	}
	return nil
}

// healthy fails unless the node serves, and knows all members, and that those which run
// are alive.
func (v view) healthy(ids map[string]*Server) error {
	if !v.ok {
		return fmt.Errorf("cluster_state is not ok")
	}
	if len(v.members) != len(ids) {
		return fmt.Errorf("%d nodes known", len(v.members))
	}
	if err := v.noneUnknown(); err != nil {
		return err
	}
	masters := 0
	for _, m := range v.members {
		n := ids[m.id]
		if n == nil {
			return fmt.Errorf("a stranger: %s", m.id)
		}
		if n.running() && (m.is("fail") || m.is("fail?")) {
			return fmt.Errorf("%s is believed dead", m.id)
		}
		switch {
		case len(m.slots) > 0:
			masters++
		case n.running() && !m.is("slave"):
			return fmt.Errorf("%s has neither slots nor a master", m.id)
		}
	}
	if masters != clusterMasters {
		return fmt.Errorf("%d masters with slots", masters)
	}
	return nil
}
