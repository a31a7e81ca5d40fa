package holdfast_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A script's header is its contract: every KEYS[n] and ARGV[n] that the code uses is
// described, nothing else is, and what it returns is said.
func TestScripts_HeaderIsTheContract(t *testing.T) {
	files, err := filepath.Glob("scripts/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	preludes, err := filepath.Glob("scripts/prelude/*.lua")
	if err != nil || len(preludes) == 0 {
		t.Fatalf("no preludes: %v", err)
	}
	for _, file := range preludes {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "-- "+filepath.Base(file)+": prelude of ") {
			t.Errorf("%s: the header does not begin with the file's name and what it is for", file)
		}
		if strings.Contains(string(text), "KEYS[") || strings.Contains(string(text), "ARGV[") {
			t.Errorf("%s: a prelude takes what it needs as arguments", file)
		}
		if readme, err := os.ReadFile("scripts/README.md"); err != nil || !strings.Contains(string(readme), "`prelude/"+filepath.Base(file)+"`") {
			t.Errorf("%s: scripts/README.md does not list it (%v)", file, err)
		}
	}
	param := regexp.MustCompile(`(KEYS|ARGV)\[([^\]]+)\]`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		src := string(text)
		var header, code []string
		for _, line := range strings.Split(src, "\n") {
			if strings.HasPrefix(line, "--") && len(code) == 0 {
				header = append(header, line)
			} else {
				code = append(code, line)
			}
		}
		head, body := strings.Join(header, "\n"), strings.Join(code, "\n")
		if !strings.HasPrefix(head, "-- "+filepath.Base(file)+": ") {
			t.Errorf("%s: the header does not begin with the file's name and what it does", file)
		}
		if !strings.Contains(head, "\n-- Returns ") {
			t.Errorf("%s: the header does not say what it returns", file)
		}
		if !strings.HasSuffix(src, "\n") || strings.HasSuffix(src, "\n\n") {
			t.Errorf("%s: does not end in one newline", file)
		}
		lines := regexp.MustCompile(`(\n|then|else)\n( *)-- prelude:(( \w+)+)\n\n`).FindAllStringSubmatch(src, -1)
		if strings.Count(src, "-- prelude:") != len(lines) {
			t.Errorf("%s: a line that names preludes stands between empty lines, or begins a block", file)
		}
		var named []string
		for _, line := range lines {
			if line[2] == "" { // what a block defines, another does not know
				named = append(named, strings.Fields(line[3])...)
			}
		}
		slices.Sort(named)
		if len(slices.Compact(slices.Clone(named))) != len(named) {
			t.Errorf("%s: preludes %v, one of them twice", file, named)
		}
		params := func(s string) map[string]bool {
			all := map[string]bool{}
			for _, m := range param.FindAllStringSubmatch(s, -1) {
				index := m[2]
				if strings.Trim(index, "0123456789") != "" {
					index = "i" // an expression: a list
				}
				all[m[1]+index] = true
			}
			return all
		}
		described, used := params(head), params(body)
		if strings.Contains(body, "ipairs(KEYS)") {
			used["KEYSi"] = true
		}
		if strings.Contains(body, "ARGV[i]") {
			used["ARGVi"] = true
		}
		for p := range used {
			if !described[p] {
				t.Errorf("%s: uses %s, which the header does not describe", file, p)
			}
		}
		for p := range described {
			if !used[p] {
				t.Errorf("%s: describes %s, which it does not use", file, p)
			}
		}
		if readme, err := os.ReadFile("scripts/README.md"); err != nil || !strings.Contains(string(readme), "`"+filepath.Base(file)+"`") {
			t.Errorf("%s: scripts/README.md does not list it (%v)", file, err)
		}
	}
}
