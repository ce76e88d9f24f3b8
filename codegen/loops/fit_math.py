"""Prints the polynomial coefficients of Math.cpp. Needs mpmath. Each is a Chebyshev expansion in 60 digits, turned into powers."""
import mpmath as mp

mp.mp.dps = 60


def fit(f, low, high, degree):
    """Coefficients, lowest first, of the polynomial through the Chebyshev points of [low, high], and its largest error."""
    low, high = mp.mpf(low), mp.mpf(high)
    n = degree + 1
    xs = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    matrix = mp.matrix(n, n)
    for i, x in enumerate(xs):
        for j in range(n):
            matrix[i, j] = x**j
    c = list(mp.lu_solve(matrix, mp.matrix([f(x) for x in xs])))
    worst = max(abs(mp.polyval(c[::-1], t) - f(t)) for t in mp.linspace(low, high, 400))
    return c, worst


def show(name, f, low, high, degree):
    c, worst = fit(f, low, high, degree)
    print(f"// {name}: degree {degree} on [{mp.nstr(mp.mpf(low), 6)}, {mp.nstr(mp.mpf(high), 6)}], error {mp.nstr(worst, 3)}")
    print("{" + ", ".join(mp.nstr(x, 19) for x in c) + "},")


def erf_by_x(u):
    x = mp.sqrt(u)
    return 2 / mp.sqrt(mp.pi) if u == 0 else mp.erf(x) / x


def atan_tail(u):  # atan(x) = x + x u g(u), u = x^2
    x = mp.sqrt(u)
    return mp.mpf(-1) / 3 if u < mp.mpf(10) ** -30 else (mp.atan(x) - x) / (x * u)


def exp_tail(r):  # exp(r) = 1 + r + r^2 g(r)
    return mp.mpf(1) / 2 + r / 6 if abs(r) < mp.mpf(10) ** -20 else (mp.exp(r) - 1 - r) / r**2


show("f32 (exp(r) - 1 - r) / r^2 in r", exp_tail, -mp.log(2) / 2 * mp.mpf("1.001"), mp.log(2) / 2 * mp.mpf("1.001"), 4)
show("f32 erf(x)/x in 2 x^2 / 3.9375^2 - 1", lambda t: erf_by_x((t + 1) * mp.mpf("3.9375") ** 2 / 2), -1, 1, 15)
for bits, small, large, centre, radius in (("f64", 14, 28, 3.5, 2.5),):
    show(f"{bits} erf(x)/x in x^2", erf_by_x, 0, 1, small)
    show(f"{bits} log(erfc({centre} + {radius} t)) in t", lambda t: mp.log(mp.erfc(mp.mpf(centre) + mp.mpf(radius) * t)), -1, 1, large)
for bits, degree in (("f32", 4), ("f64", 11)):
    show(f"{bits} (atan(x) - x) / x^3 in x^2", atan_tail, 0, mp.tan(mp.pi / 8) ** 2, degree)
