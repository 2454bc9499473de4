// Package levenshtein tells how far apart two names are, to say what was probably
// meant. It is pure, and a leaf: it imports nothing of this module.
package levenshtein

// Distance is the number of bytes to change, add or remove to make b of a. It takes
// time in proportion to len(a)*len(b): bound what comes from outside.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
