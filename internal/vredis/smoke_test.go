package vredis_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

func TestSmoke(t *testing.T) {
	s := vredis.New(vredis.Options{})
	c, _ := s.Dial(context.Background(), "", "")
	w := newWire(t, c)
	t.Log(w.do("hset", "h", "a", "1", "b", "2"))
	t.Log(w.do("hello", "3"))
	t.Log(w.do("hgetall", "h"))
	t.Log(w.do("eval", "return {1,2.7,'x',redis.call('get','h')}", "0"))
	t.Log(w.do("eval", "local x = 1\nreturn {1,2.7,'x',redis.pcall('get','h'), false, 3, nil, 4}", "0"))
	t.Log(w.do("eval", "x = 1", "0"))
	t.Log(w.do("eval", "return x", "0"))
	t.Log(w.do("eval", "return tostring(1e15)..string.format('%.0f %s', 3.5, 7)", "0"))
}
