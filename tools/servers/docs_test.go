package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ours is the server in the PATH, on which make test runs.
const ours = "Redis 7.0"

// line returns the server and its line of versions, such as Valkey 9.1.
func (s server) line() string {
	name, _, _ := strings.Cut(s.name, "-")
	parts := strings.Split(s.version, ".")
	return strings.ToUpper(name[:1]) + name[1:] + " " + parts[0] + "." + parts[1]
}

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs/SETUP.md lists the servers of the table, with these versions, and no others.
func TestTable_IsInSetup(t *testing.T) {
	_, section, found := strings.Cut(document(t, "../../docs/SETUP.md"), "\n## Servers\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("no section Servers")
	}
	listed := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ((?:Redis|Valkey) [\d.]+) \| ([\d.]+) \|`).FindAllStringSubmatch(section, -1) {
		listed[row[1]] = row[2]
	}
	for _, s := range servers {
		if listed[s.line()] != s.version {
			t.Errorf("%s is listed as %q, want %q", s.line(), listed[s.line()], s.version)
		}
		delete(listed, s.line())
	}
	delete(listed, ours)
	if len(listed) > 0 {
		t.Errorf("listed, and not in the table: %v", listed)
	}
}

// README.md names the same lines of versions.
func TestTable_IsInREADME(t *testing.T) {
	tested := regexp.MustCompile(`(?s)It is tested on (.*?)\(`).FindStringSubmatch(document(t, "../../README.md"))
	if tested == nil {
		t.Fatal("no sentence about the servers")
	}
	var listed []string
	name := ""
	for _, word := range strings.FieldsFunc(tested[1], func(r rune) bool { return r == ' ' || r == ',' || r == '\n' }) {
		switch {
		case word == "Redis" || word == "Valkey":
			name = word
		case word[0] >= '0' && word[0] <= '9':
			listed = append(listed, name+" "+word)
		}
	}
	want := []string{ours}
	for _, s := range servers {
		want = append(want, s.line())
	}
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("README names %q, want %q", listed, want)
	}
}
