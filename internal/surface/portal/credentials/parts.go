package credentials

import "slices"

func turn(g gate) string {
	if g.On {
		return "Turn off"
	}
	return "Turn on"
}

func variant(g gate) string {
	if g.Danger && !g.On {
		return "destructive"
	}
	return "outline"
}

// barHeight is a bar's of the sparkline, of 18.
func barHeight(n int64, all []int64) int64 {
	if n == 0 {
		return 1
	}
	return max(2, n*18/max(1, slices.Max(all)))
}

func opacity(n int64) string {
	if n == 0 {
		return "0.25"
	}
	return "0.9"
}
