"""Draws learning curves from `nlac demo --report` files:  curve.py OUT.svg LABEL=REPORT.json …"""

import json
import sys

out, runs = sys.argv[1], [a.split("=", 1) for a in sys.argv[2:]]
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 320, 56, 16, 190, 40
COLOURS = ["#2f6f4f", "#4f9a73", "#8cc3a4", "#a3511f", "#a32a2a", "#5b6c9e", "#888"]
curves = [(label, json.load(open(path))) for label, path in runs]
last = max(p[0] for _, r in curves for p in r["curve"])
x = lambda i: LEFT + (WIDTH - LEFT - RIGHT) * i / last
y = lambda v: TOP + (HEIGHT - TOP - BOTTOM) * (1 - v)
svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, sans-serif" font-size="12">',
       f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
for tick in range(0, 101, 25):
    at = y(tick / 100)
    svg.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#e4e1d9"/>'
               f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" fill="#6a6f78">{tick} %</text>')
for i in range(0, last + 1, 4):
    svg.append(f'<text x="{x(i):.1f}" y="{HEIGHT - 18}" text-anchor="middle" fill="#6a6f78">{i}</text>')
svg.append(f'<text x="{x(last / 2):.1f}" y="{HEIGHT - 3}" text-anchor="middle" fill="#6a6f78">iteration</text>')
for n, (label, report) in enumerate(curves):
    points = " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in report["curve"])
    colour = COLOURS[n % len(COLOURS)]
    svg.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.2" stroke-linejoin="round"/>')
    row = TOP + 14 + 18 * n
    svg.append(f'<line x1="{WIDTH - RIGHT + 14}" x2="{WIDTH - RIGHT + 34}" y1="{row - 4}" y2="{row - 4}" stroke="{colour}" stroke-width="2.2"/>'
               f'<text x="{WIDTH - RIGHT + 40}" y="{row}" fill="#1d1f23">{label}</text>')
open(out, "w").write("\n".join(svg + ["</svg>"]) + "\n")
