// Package delta encodes and decodes Parquet's DELTA_BINARY_PACKED: integers as the differences
// between neighbours, less the least of their block. It writes them tightly, or in whole bytes,
// which zstd compresses better.
package delta

import "encoding/binary"

// wordBits is the least number of bits that an eight-byte load contains from a given bit on.
const wordBits = 57

// addPacked decodes packed deltas from pos on: each value is the previous one (first last) plus
// least plus the delta. It fills dst and returns the last value. It may load, but does not use, the
// bytes after b up to its capacity.
func addPacked(dst []uint64, last, least uint64, b []byte, width, pos int) uint64 {
	switch {
	case width == 0:
		return addNothing(dst, last, least)
	case width == 8:
		return addBytes(dst, last, least, b[pos:])
	case width == 16:
		return addPairs(dst, last, least, b[2*pos:])
	case width <= wordBits/2:
		return addFew(dst, last, least, b, width, pos)
	}
	return addEach(dst, last, least, b, width, pos)
}

func addNothing(dst []uint64, last, least uint64) uint64 {
	for ; len(dst) >= 8; dst = dst[8:] {
		d := (*[8]uint64)(dst)
		next := last + 4*least
		d[0], d[1], d[2], d[3] = last+least, last+2*least, last+3*least, next
		last = next + 4*least
		d[4], d[5], d[6], d[7] = next+least, next+2*least, next+3*least, last
	}
	for i := range dst {
		last += least
		dst[i] = last
	}
	return last
}

// addBytes is addPacked for deltas of one byte, from the start of b.
func addBytes(dst []uint64, last, least uint64, b []byte) uint64 {
	for ; len(dst) >= 8 && len(b) >= 8; dst, b = dst[8:], b[8:] {
		d, word := (*[8]uint64)(dst), binary.LittleEndian.Uint64(b)
		last += least + word&0xff
		d[0] = last
		last += least + word>>8&0xff
		d[1] = last
		last += least + word>>16&0xff
		d[2] = last
		last += least + word>>24&0xff
		d[3] = last
		last += least + word>>32&0xff
		d[4] = last
		last += least + word>>40&0xff
		d[5] = last
		last += least + word>>48&0xff
		d[6] = last
		last += least + word>>56
		d[7] = last
	}
	for i := range dst {
		last += least + uint64(b[i])
		dst[i] = last
	}
	return last
}

// addPairs is addPacked for deltas of two bytes, from the start of b.
func addPairs(dst []uint64, last, least uint64, b []byte) uint64 {
	for ; len(dst) >= 4 && len(b) >= 8; dst, b = dst[4:], b[8:] {
		d, word := (*[4]uint64)(dst), binary.LittleEndian.Uint64(b)
		last += least + word&0xffff
		d[0] = last
		last += least + word>>16&0xffff
		d[1] = last
		last += least + word>>32&0xffff
		d[2] = last
		last += least + word>>48
		d[3] = last
	}
	for i := range dst {
		last += least + uint64(binary.LittleEndian.Uint16(b[2*i:]))
		dst[i] = last
	}
	return last
}

// addFew is addPacked for widths of which a word holds several: four if width is at most
// wordBits/4, else two.
func addFew(dst []uint64, last, least uint64, b []byte, width, pos int) uint64 {
	all, mask, bit, shift := b[:cap(b)], uint64(1)<<(width&63)-1, pos*width, width&63
	if width <= wordBits/4 {
		for ; len(dst) >= 4 && bit>>3+8 <= len(all); dst = dst[4:] {
			d, word := (*[4]uint64)(dst), binary.LittleEndian.Uint64(all[bit>>3:])>>(bit&7)
			last += least + word&mask
			d[0] = last
			word >>= shift
			last += least + word&mask
			d[1] = last
			word >>= shift
			last += least + word&mask
			d[2] = last
			last += least + word>>shift&mask
			d[3] = last
			bit += 4 * width
			pos += 4
		}
	}
	for ; len(dst) >= 2 && bit>>3+8 <= len(all); dst = dst[2:] {
		d, word := (*[2]uint64)(dst), binary.LittleEndian.Uint64(all[bit>>3:])>>(bit&7)
		last += least + word&mask
		d[0] = last
		last += least + word>>shift&mask
		d[1] = last
		bit += 2 * width
		pos += 2
	}
	return addEach(dst, last, least, b, width, pos)
}

// addEach is addPacked, one value at a time.
func addEach(dst []uint64, last, least uint64, b []byte, width, pos int) uint64 {
	i := 0
	if width <= wordBits {
		all, mask := b[:cap(b)], uint64(1)<<(width&63)-1
		for bit := pos * width; i < len(dst) && bit>>3+8 <= len(all); bit += width {
			last += least + binary.LittleEndian.Uint64(all[bit>>3:])>>(bit&7)&mask
			dst[i] = last
			i++
		}
	}
	for ; i < len(dst); i++ {
		last += least + packed(b, width, pos+i)
		dst[i] = last
	}
	return last
}

// sumPacked returns the sum of n packed values from pos on. It may load, but does not use, the bytes
// after b up to its capacity.
func sumPacked(b []byte, width, pos, n int) (sum uint64) {
	i := 0
	if 0 < width && width <= wordBits/2 {
		i, sum = sumLanes(b[:cap(b)], width, pos, n)
	} else if width <= wordBits {
		all, mask := b[:cap(b)], uint64(1)<<(width&63)-1
		for bit := pos * width; i < n && bit>>3+8 <= len(all); bit += width {
			sum += binary.LittleEndian.Uint64(all[bit>>3:]) >> (bit & 7) & mask
			i++
		}
	}
	for ; i < n; i++ {
		sum += packed(b, width, pos+i)
	}
	return sum
}

// lanes describe how the packed values of a word are added up several at a time: its values 0, 2, 4
// … and its values 1, 3, 5 …, moved down by one value, are added to lanes of twice their width.
type lanes struct {
	per       int    // values in a word
	words     int    // that can be added to lanes before these overflow
	even, odd uint64 // bits of the values
	lowest    uint64 // bits of the lowest lane
}

// lanesOf are the lanes of each width of which a word holds at least two values.
var lanesOf = func() (all [wordBits/2 + 1]lanes) {
	for w := 1; w < len(all); w++ {
		l := &all[w]
		if l.per = wordBits / w; w%8 == 0 {
			l.per = 64 / w // words begin at a whole byte
		}
		for i := range l.per {
			if value := uint64(1)<<w - 1; i%2 == 0 {
				l.even |= value << (i * w)
			} else {
				l.odd |= value << ((i - 1) * w)
			}
		}
		// The highest lane may be narrower: it has at least 7 bits more than the only value that is
		// added to it.
		l.words, l.lowest = min((1<<w+1)/2, 1<<7), uint64(1)<<(2*w)-1
	}
	return all
}()

// sumLanes adds up packed values from pos on: as many of n as lie in words that b contains. It
// returns their number.
func sumLanes(b []byte, width, pos, n int) (i int, sum uint64) {
	l := &lanesOf[width]
	bit := pos * width
	for words := min(n, (8*len(b)-bit-64)/width) / l.per; words > 0; {
		some := min(words, l.words)
		words -= some
		i += some * l.per
		var acc uint64
		for ; some > 0; some-- {
			word := binary.LittleEndian.Uint64(b[bit>>3:]) >> (bit & 7)
			acc += word&l.even + word>>(width&63)&l.odd
			bit += l.per * width
		}
		for ; acc != 0; acc >>= 2 * width & 63 {
			sum += acc & l.lowest
		}
	}
	if rest := n - i; 0 < rest && rest < l.per && bit>>3+8 <= len(b) {
		word := binary.LittleEndian.Uint64(b[bit>>3:]) >> (bit & 7) & (1<<(rest*width&63) - 1)
		acc := word&l.even + word>>(width&63)&l.odd
		for ; acc != 0; acc >>= 2 * width & 63 {
			sum += acc & l.lowest
		}
		i = n
	}
	return i, sum
}

// packed returns value i of a run of bit-packed values, least significant bit first. b must contain
// it.
func packed(b []byte, width, i int) uint64 {
	bit := i * width
	at, have := bit>>3, 8-bit&7
	v := uint64(b[at]) >> (bit & 7)
	for ; have < width; have += 8 {
		at++
		v |= uint64(b[at]) << have
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}
