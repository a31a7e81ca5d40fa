// Package scripts embeds the Lua scripts that Holdfast runs on Redis. It is no API: README.md describes the
// keys, the channels and the rules of the scripts, and package protocol sends them.
package scripts

import "embed"

// Files are the scripts, and the preludes that they name.
//
//go:embed *.lua prelude/*.lua
var Files embed.FS
