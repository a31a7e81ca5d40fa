// Package scripts embeds the Lua scripts that Holdfast runs on Redis. It is no API: README.md describes the
// keys, the channels and the rules of the scripts, and package protocol sends them.
package scripts

import "embed"

// Files are the scripts, the libraries that they include, and the form in which one runs for many calls.
//
//go:embed *.lua lib/*.lua form/*.lua
var Files embed.FS
