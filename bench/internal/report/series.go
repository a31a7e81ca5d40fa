package report

import (
	"encoding/json"
	"math"
	"slices"
)

// Series has a metric's value in each round, or slice of one; NaN, which is null in JSON, where
// there is none.
type Series []float64

// At is s with the value of the n-th round.
func (s Series) At(n int, v float64) Series {
	for len(s) < n {
		s = append(s, math.NaN())
	}
	return append(s, v)
}

// measured are the values that there are.
func (s Series) measured() []float64 {
	return slices.DeleteFunc(slices.Clone(s), math.IsNaN)
}

// MarshalJSON implements json.Marshaler, whose numbers know no NaN.
func (s Series) MarshalJSON() ([]byte, error) {
	values := make([]*float64, len(s))
	for i := range s {
		if !math.IsNaN(s[i]) {
			values[i] = &s[i]
		}
	}
	return json.Marshal(values)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Series) UnmarshalJSON(data []byte) error {
	var values []*float64
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	*s = nil
	for i, v := range values {
		if v != nil {
			*s = s.At(i, *v)
		}
	}
	return nil
}
