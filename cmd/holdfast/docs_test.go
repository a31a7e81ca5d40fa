package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

// docs/COMMAND.md has a section for each command, and there each of its flags.
func TestDocs_CommandHasEveryFlag(t *testing.T) {
	text, err := os.ReadFile("../../docs/COMMAND.md")
	must(t, err)
	_, common, _ := strings.Cut(string(text), "## Common flags\n")
	common, _, _ = strings.Cut(common, "\n## ")
	var shared []string
	for _, f := range redisFlags() {
		shared = append(shared, f.Names()...)
	}
	n := 0
	for _, cmd := range newCommand(&bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}).Commands {
		if cmd.Hidden || cmd.Name == "demo" {
			continue
		}
		_, section, ok := strings.Cut(string(text), "\n## holdfast "+cmd.Name+"\n")
		if !ok {
			t.Errorf("there is no section about %s", cmd.Name)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, f := range cmd.Flags {
			n++
			where, names := section, f.Names()
			if slices.Contains(shared, names[0]) {
				where = common
			}
			if slices.Contains([]string{"output", "lease"}, names[0]) {
				where = string(text) // for several commands they are explained once
			}
			if !slices.ContainsFunc(names, func(name string) bool {
				dashes := "--"
				if len(name) == 1 {
					dashes = "-"
				}
				return strings.Contains(where, "`"+dashes+name+"`") || strings.Contains(where, "`"+dashes+name+" ")
			}) {
				t.Errorf("%s: %q is not explained", cmd.Name, names)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d flags found", n)
	}
}
