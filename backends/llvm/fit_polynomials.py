"""Minimax polynomials for float_math.cc, by Remez exchange in 40 digits. Needs mpmath. Prints float coefficients, lowest power first."""

import struct

from mpmath import cos, erf, erfc, exp, log, lu_solve, matrix, mp, mpf, nstr, pi, sqrt

mp.dps = 40


def fit(name, function, weight, terms, low, high):
    """The polynomial p with `terms` coefficients for which max |p - function| * weight on [low, high] is least."""
    low, high = mpf(low), mpf(high)
    points = [(low + high) / 2 - (high - low) / 2 * cos(pi * i / terms) for i in range(terms + 1)]
    grid = [(low + high) / 2 - (high - low) / 2 * cos(pi * i / 600) for i in range(601)]
    values = [(x, function(x), weight(x)) for x in grid]
    for _ in range(30):
        system = matrix(terms + 1, terms + 1)
        right = matrix(terms + 1, 1)
        for i, x in enumerate(points):
            for k in range(terms):
                system[i, k] = x**k
            system[i, terms] = (-1) ** i / weight(x)
            right[i] = function(x)
        coefficients = list(lu_solve(system, right))[:terms]
        errors = [(sum(c * x**k for k, c in enumerate(coefficients)) - f) * w for x, f, w in values]
        extrema = [0]  # the largest error of each run of one sign
        for i in range(1, len(grid)):
            if errors[i] * errors[extrema[-1]] < 0:
                extrema.append(i)
            elif abs(errors[i]) > abs(errors[extrema[-1]]):
                extrema[-1] = i
        while len(extrema) > terms + 1:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        if len(extrema) < terms + 1 or [grid[i] for i in extrema] == points:
            break
        points = [grid[i] for i in extrema]
    print(f"{name}: error {nstr(max(abs(e) for e in errors), 3)}")
    for c in coefficients:
        print("   ", struct.unpack("f", struct.pack("f", float(c)))[0].hex())


ln2_low = log(2) - mpf(0x163) / 512
print("ln 2 - 0x1.63p-1:", struct.unpack("f", struct.pack("f", float(ln2_low)))[0].hex())
tiny = mpf("1e-8")
half = log(2) / 2 * mpf("1.01")
fit("(exp(r) - 1 - r) / r^2", lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > tiny else mpf(1) / 2 + r / 6,
    lambda r: (r**2 + mpf("1e-9")) / exp(r), 5, -half, half)
fit("(log(1+f) - f + f^2/2) / f^3", lambda f: (log(1 + f) - f + f * f / 2) / f**3 if abs(f) > tiny else mpf(1) / 3 - f / 4,
    lambda f: abs(f**3 / log(1 + f)) if abs(f) > mpf("1e-6") else mpf("1e-11"), 8, sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1)
fit("(2^r - 1) / r", lambda r: (2**r - 1) / r if abs(r) > tiny else log(2) + r * log(2) ** 2 / 2, lambda r: r / (2**r - 1) if abs(r) > tiny else 1 / log(2), 6,
    -mpf("0.505"), "0.505")
fit("log2(erfc(x)) / x", lambda x: log(erfc(x)) / x / log(2), lambda x: log(2) * erfc(x) * x / erf(x), 9, "1e-6", "4.02")
