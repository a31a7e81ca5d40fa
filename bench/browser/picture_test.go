package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"slices"
)

// fewerColors makes a picture small: it keeps the 255 colors that are most frequent, and the nearest of them for the others.
func fewerColors(picture []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	counts := make(map[color.RGBA]int)
	full := image.NewRGBA(img.Bounds())
	draw.Draw(full, full.Bounds(), img, img.Bounds().Min, draw.Src)
	for y := range full.Bounds().Dy() {
		for x := range full.Bounds().Dx() {
			counts[full.RGBAAt(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range frequent[:min(len(frequent), 255)] {
		palette = append(palette, c)
	}
	nearest := make(map[color.RGBA]uint8, len(counts))
	for c := range counts {
		nearest[c] = uint8(palette.Index(c))
	}
	small := image.NewPaletted(full.Bounds(), palette)
	for y := range full.Bounds().Dy() {
		for x := range full.Bounds().Dx() {
			small.SetColorIndex(x, y, nearest[full.RGBAAt(x, y)])
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&out, small)
	return out.Bytes(), err
}
