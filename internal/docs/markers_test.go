package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// conflict is a line with which git marks where two versions of a text differ.
var conflict = regexp.MustCompile(`(?m)^(?:<{7} |={7}$|>{7} )`)

// No file has a conflict that was committed: a text with both versions is read as one.
func TestDocs_HaveNoConflicts(t *testing.T) {
	if !conflict.MatchString("one\n" + strings.Repeat("<", 7) + " HEAD\ntwo\n") {
		t.Fatal("a conflict is not found")
	}
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "target"):
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		switch filepath.Ext(path) {
		case ".md", ".go", ".lua", ".java", ".sh", ".yml", ".json", ".html", "":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if line := conflict.FindString(string(text)); line != "" {
			t.Errorf("%s has a line %q", path, line)
		}
		files++
		return err
	})
	if err != nil || files < 500 {
		t.Fatalf("%d files, %v", files, err)
	}
}
