//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/wire"
)

var update = flag.Bool("update", false, "write testdata anew")

// shape replaces the values of JSON by what they are. The elements of an array become one that has the fields of all.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		fields := make(map[string]any)
		for k, x := range v {
			fields[k] = shape(x)
		}
		return fields
	case []any:
		fields := make(map[string]any)
		for _, x := range v {
			if f, ok := shape(x).(map[string]any); ok {
				maps.Copy(fields, f)
			} else {
				return []any{shape(x)}
			}
		}
		return []any{fields}
	}
	return strings.Replace(fmt.Sprintf("%T", v), "float64", "number", 1)
}

// Programs read the JSON of the commands: testdata has all fields, and they do not change their names. In json a list is
// one array, and jsonl has the elements on lines of their own.
func TestJSON_FieldsStay(t *testing.T) {
	t.Parallel()
	srv := newGallery(t)
	srv.Admin().HSet(t.Context(), wire.ProcessKey(aliceID), "app", "shop", "host", "web-3", "pid", "4121", "started", "x", "version", "v1", "debug", "http://web-3:6060/")
	srv.Admin().RPush(t.Context(), "redisson_lock_token:{stuck}", "no number")
	srv.Admin().HSet(t.Context(), "holdfast_leader:{stock:42}", "owner", aliceID, "token", "812", "news", "1", "value", "web-3")
	for _, tt := range []struct {
		file string
		args []string
	}{
		{"ls", []string{"ls"}},
		{"inspect", []string{"inspect", "stock:42", "old", "stuck", evil}},
		{"doctor", []string{"doctor"}},
		{"bench", []string{"bench", "--for=200ms", "--procs=1", "-q"}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			endSoon(t, srv)
			i := start(t, urlOf(srv), append(tt.args, "-o=json")...)
			i.wait(t)
			var all any
			must(t, json.Unmarshal(i.stdout.Bytes(), &all))
			i = start(t, urlOf(srv), append(tt.args, "-o=jsonl")...)
			i.wait(t)
			var each []any
			for line := range bytes.Lines(i.stdout.Bytes()) {
				var one any
				must(t, json.Unmarshal(line, &one))
				each = append(each, one)
			}
			got, err := json.MarshalIndent(shape(all), "", "  ")
			must(t, err)
			lines, list := shape(each), all
			if _, ok := all.([]any); !ok {
				list = []any{all}
			}
			if len(each) != len(list.([]any)) || !reflect.DeepEqual(lines, shape(list)) {
				t.Errorf("jsonl has %d lines of %v", len(each), lines)
			}
			file := filepath.Join("testdata", tt.file+".json")
			got = append(got, '\n')
			if *update {
				must(t, os.WriteFile(file, got, 0o644))
			}
			if want, err := os.ReadFile(file); err != nil || !slices.Equal(got, want) {
				t.Errorf("%v: the JSON is now\n%s", err, got)
			}
		})
	}
}
