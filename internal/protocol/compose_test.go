package protocol_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/scripts"
)

// texts are all scripts as Redis gets them, by name.
func texts(t *testing.T) map[string]string {
	t.Helper()
	files, err := fs.Glob(scripts.Files, "*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	all := map[string]string{}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".lua")
		all[name] = protocol.Text(name)
	}
	return all
}

// The first line says which script it is, and no directive for the composer is left.
func TestText(t *testing.T) {
	for name, text := range texts(t) {
		if !strings.HasPrefix(text, "-- holdfast "+name+"\n") {
			t.Errorf("%s begins with %.40q", name, text)
		}
		if strings.Contains(text, "-- prelude:") {
			t.Errorf("%s has a line for the composer", name)
		}
	}
}
