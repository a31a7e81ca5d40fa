package vredis_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// libraryScripts are all scripts of the library as Redis gets them, by name.
func libraryScripts(tb testing.TB) map[string]string {
	files, err := filepath.Glob("../../scripts/*.lua")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no scripts: %v", err)
	}
	all := map[string]string{}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".lua")
		all[name] = protocol.Text(name)
	}
	return all
}
