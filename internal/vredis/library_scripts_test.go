package vredis_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var preludeLine = regexp.MustCompile(`(?m)^ *-- prelude:( \w+)+\n`)

// libraryScript puts one of the library's scripts together as the library does.
func libraryScript(tb testing.TB, file string) string {
	text, err := os.ReadFile(filepath.Join("..", "..", "scripts", file+".lua"))
	if err != nil {
		tb.Fatal(err)
	}
	return preludeLine.ReplaceAllStringFunc(string(text), func(line string) string {
		var all strings.Builder
		for _, p := range strings.Fields(line)[2:] {
			all.WriteString(libraryScript(tb, "prelude/"+p))
		}
		return all.String()
	})
}

// libraryScripts are all of them, by name.
func libraryScripts(tb testing.TB) map[string]string {
	files, err := filepath.Glob("../../scripts/*.lua")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no scripts: %v", err)
	}
	all := map[string]string{}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".lua")
		all[name] = libraryScript(tb, name)
	}
	return all
}
