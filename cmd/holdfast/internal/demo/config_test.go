package demo

import (
	"strings"
	"testing"
	"time"
)

func TestConfig_Validate(t *testing.T) {
	good := Config{Buyers: 3, Stock: 0, Processes: 3, Hold: 0, Redis: "redis://localhost:6379/1"}
	for _, tt := range []struct {
		name  string
		spoil func(*Config)
		want  string // "" is no error
	}{
		{"good", func(*Config) {}, ""},
		{"embedded", func(c *Config) { c.Redis = "" }, ""},
		{"no buyers", func(c *Config) { c.Buyers = 0 }, "--buyers"},
		{"negative stock", func(c *Config) { c.Stock = -1 }, "--stock"},
		{"no processes", func(c *Config) { c.Processes = 0 }, "--processes"},
		{"too many processes", func(c *Config) { c.Processes = 4 }, "--processes"},
		{"negative hold", func(c *Config) { c.Hold = -time.Nanosecond }, "--hold"},
		{"scheme", func(c *Config) { c.Redis = "http://user:secret@x" }, "--redis: cannot be read"},
		{"database", func(c *Config) { c.Redis = "redis://user:12/secret@x" }, "--redis: cannot be read"},
		{"escape", func(c *Config) { c.Redis = "redis://user:secret%zz@x" }, "--redis: cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := good
			tt.spoil(&c)
			err := c.Validate()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Validate() = %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Validate() = %v, want %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), "secret"):
				t.Errorf("Validate() gives the password away: %v", err)
			}
		})
	}
}

func TestConfig_ShiftsCoverEveryBuyerOnce(t *testing.T) {
	for buyers := 1; buyers <= 12; buyers++ {
		for processes := 1; processes <= buyers; processes++ {
			c := Config{Buyers: buyers, Stock: 5, Processes: processes, Hold: time.Second, Unsafe: true}
			next, least, most := 1, buyers, 0
			for i, s := range c.shifts("id") {
				if s.Process != i+1 || s.First != next || s.Sale != "id" || s.Stock != 5 || s.Hold != time.Second || !s.Unsafe {
					t.Fatalf("%d buyers in %d processes: shift %d is %+v, want it to begin with buyer %d", buyers, processes, i, s, next)
				}
				next += s.Count
				least, most = min(least, s.Count), max(most, s.Count)
			}
			if next != buyers+1 || most-least > 1 {
				t.Errorf("%d buyers in %d processes: up to buyer %d, %d to %d each", buyers, processes, next-1, least, most)
			}
		}
	}
}

func TestParseMessage(t *testing.T) {
	for line, ok := range map[string]bool{
		`{"ready":true}`:                     true,
		`{"outcome":{"buyer":3,"phone":1}}`:  true,
		`{"figures":{"commands":0}}`:         true,
		``:                                   false,
		`{}`:                                 false,
		`null`:                               false,
		`{"ready":true} {"ready":true}`:      false,
		`{"ready":true,"what":1}`:            false,
		`panic: runtime error`:               false,
		`{"outcome":{"buyer":3,"phone":1}`:   false,
		`{"outcome":{"buyer":"3","phone":1}`: false,
	} {
		if _, err := parseMessage([]byte(line)); (err == nil) != ok {
			t.Errorf("parseMessage(%s) = %v, want ok = %t", line, err, ok)
		}
	}
}
