//! Draws the plots of the report: index size, build time by input size, lookups.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::report::{InputFigures, Report};
use crate::tool::Tool;

const SIZE: (u32, u32) = (900, 460);
/// The colour of each tool. The peers' colours differ in brightness too, for readers with colour blindness.
const COLOURS: [(Tool, RGBColor); 6] = [
    (Tool::Symdex, RGBColor(0, 90, 181)),
    (Tool::SymdexOneThread, RGBColor(120, 170, 225)),
    (Tool::Symcache, RGBColor(220, 50, 32)),
    (Tool::Gsym, RGBColor(240, 160, 30)),
    (Tool::DumpSyms, RGBColor(110, 110, 110)),
    (Tool::Addr2line, RGBColor(60, 140, 70)),
];

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// A figure of an input and a tool, if the tool has it.
type Figure<'f> = &'f dyn Fn(&InputFigures, Tool) -> Option<f64>;

/// Draws all plots into `folder`, as `DATE-size.svg` and so on. Returns the names of the files.
///
/// # Errors
/// A file cannot be written or drawn.
pub fn draw(report: &Report, folder: &Path) -> Result<Vec<String>> {
    let size: Figure<'_> = &|input, tool| built(input, tool, |build| build.size as f64 / 1e6);
    let uniform: Figure<'_> = &|input, tool| looked_up(input, tool, |figures| figures.uniform.mean);
    // A small image may have no addresses that were not asked for.
    let fresh: Figure<'_> = &|input, tool| {
        looked_up(input, tool, |figures| figures.fresh.unwrap_or_default()).filter(|time| *time > 0.0)
    };
    let cold: Figure<'_> = &|input, tool| looked_up(input, tool, |figures| figures.cold_first);
    let bars = [
        ("size", "Index size, MB", size),
        ("lookup", "Lookup of an address asked before, uniform mean, ns", uniform),
        ("fresh", "Lookup of an address never asked before, uniform mean, ns", fresh),
        ("cold", "Open and first answer, ns", cold),
    ];
    let mut names = Vec::new();
    let measured = |(_, _, figure): &(&str, &str, Figure<'_>)| {
        report.inputs.iter().any(|input| figure(input, Tool::Symdex).is_some())
    };
    for (what, title, figure) in bars.into_iter().filter(measured) {
        let name = format!("{}-{what}.svg", report.date);
        draw_bars(&folder.join(&name), title, &report.inputs, figure)
            .map_err(|error| anyhow!("{name}: {error}"))?;
        names.push(name);
    }
    if report.inputs.len() > 1 {
        let name = format!("{}-build.svg", report.date);
        draw_growth(&folder.join(&name), &report.inputs).map_err(|error| anyhow!("{name}: {error}"))?;
        names.push(name);
    }
    Ok(names)
}

fn built(
    input: &InputFigures,
    tool: Tool,
    figure: impl Fn(&crate::report::BuildFigures) -> f64,
) -> Option<f64> {
    input.builds.iter().find(|build| build.tool == tool && build.cost.is_some()).map(figure)
}

fn looked_up(
    input: &InputFigures,
    tool: Tool,
    figure: impl Fn(&crate::report::LookupFigures) -> f64,
) -> Option<f64> {
    let (_, figures) = input.lookups.iter().find(|(looked, _)| *looked == tool)?;
    figures.as_ref().ok().map(figure)
}

/// The CPU seconds of a build.
fn cpu(input: &InputFigures, tool: Tool) -> Option<f64> {
    let build = input.builds.iter().find(|build| build.tool == tool)?;
    build.cost.as_ref().map(|cost| cost.cpu)
}

/// The exponent `k` of a tool's CPU time, time = constant x size^k, fitted over all inputs by least squares of the
/// logarithms. `None` for fewer than two inputs.
pub fn exponent(inputs: &[InputFigures], tool: Tool) -> Option<f64> {
    slope(&points(inputs, tool))
}

fn points(inputs: &[InputFigures], tool: Tool) -> Vec<(f64, f64)> {
    let point = |input: &InputFigures| Some((input.size as f64 / 1e6, cpu(input, tool)?));
    let mut points: Vec<_> = inputs.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let len = points.len() as f64;
    let logs: Vec<_> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let (x_mean, y_mean) =
        (logs.iter().map(|p| p.0).sum::<f64>() / len, logs.iter().map(|p| p.1).sum::<f64>() / len);
    let over = logs.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum::<f64>();
    let under = logs.iter().map(|(x, _)| (x - x_mean).powi(2)).sum::<f64>();
    (points.len() > 1 && under > 0.0).then_some(over / under)
}

/// Draws bars on a logarithmic scale: a group for each input, a bar for each tool.
fn draw_bars(path: &Path, title: &str, inputs: &[InputFigures], figure: Figure<'_>) -> Result<()> {
    let of = |tool: Tool| inputs.iter().map(move |input| figure(input, tool));
    let tools: Vec<_> =
        COLOURS.into_iter().filter(|(tool, _)| of(*tool).any(|value| value.is_some())).collect();
    let values = tools.iter().flat_map(|(tool, _)| of(*tool)).flatten();
    let canvas = canvas(path)?;
    let mut chart = ChartBuilder::on(&canvas)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(64)
        .build_cartesian_2d(0f64..inputs.len() as f64, decades(values).log_scale())?;
    // The label is in the middle of its group.
    let name = |x: &f64| {
        let mut groups = inputs.iter().zip(0u32..);
        let input = groups.find(|(_, group)| (x - f64::from(*group) - 0.5).abs() < 1e-9);
        input.map_or_else(String::new, |(input, _)| input.name.clone())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(2 * inputs.len() + 1)
        .x_label_formatter(&name)
        .y_label_formatter(&|value| label(*value))
        .draw()?;
    let width = 0.84 / tools.len().max(1) as f64;
    for (number, (tool, colour)) in tools.iter().enumerate() {
        let bars = of(*tool).enumerate().filter_map(|(group, value)| {
            let left = group as f64 + 0.08 + width * number as f64;
            Some(Rectangle::new([(left, 0.0), (left + width * 0.92, value?)], colour.filled()))
        });
        chart.draw_series(bars)?.label(tool.name()).legend(sample(*colour));
    }
    draw_legend(&mut chart)?;
    Ok(canvas.present()?)
}

/// Draws the CPU time of builds over the size of the debug file, both on logarithmic scales.
fn draw_growth(path: &Path, inputs: &[InputFigures]) -> Result<()> {
    let tools: Vec<_> = COLOURS
        .into_iter()
        .map(|(tool, colour)| (tool, colour, points(inputs, tool)))
        .filter(|(.., points)| points.len() > 1)
        .collect();
    let all = || tools.iter().flat_map(|(.., points)| points);
    let canvas = canvas(path)?;
    let mut chart = ChartBuilder::on(&canvas)
        .caption("CPU seconds of a build against the debug file's MB", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(64)
        .build_cartesian_2d(
            decades(all().map(|point| point.0)).log_scale(),
            decades(all().map(|point| point.1)).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_label_formatter(&|value| label(*value))
        .y_label_formatter(&|value| label(*value))
        .draw()?;
    for (tool, colour, points) in &tools {
        let (colour, exponent) = (*colour, slope(points).unwrap_or_default());
        chart
            .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?
            .label(format!("{}: size^{exponent:.2}", tool.name()))
            .legend(sample(colour));
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 4, colour.filled())))?;
    }
    draw_legend(&mut chart)?;
    Ok(canvas.present()?)
}

/// The sample of a colour in the legend.
fn sample(colour: RGBColor) -> impl Fn((i32, i32)) -> Rectangle<(i32, i32)> {
    move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled())
}

fn draw_legend<'a, X: Ranged, Y: Ranged>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
) -> Result<()> {
    let mut legend = chart.configure_series_labels();
    legend.position(SeriesLabelPosition::UpperLeft).border_style(BLACK).background_style(WHITE);
    Ok(legend.draw()?)
}

fn canvas(path: &Path) -> Result<Canvas<'_>> {
    let canvas = SVGBackend::new(path, SIZE).into_drawing_area();
    canvas.fill(&WHITE)?;
    Ok(canvas)
}

/// The smallest range of powers of ten that contains all values.
fn decades(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values
        .filter(|value| *value > 0.0)
        .fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| (low.min(value), high.max(value)));
    10f64.powf(low.min(high).log10().floor())..10f64.powf(high.log10().ceil())
}

fn label(value: f64) -> String {
    if value >= 1.0 { format!("{value:.0}") } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponent_of_a_power_is_found() {
        let points =
            |power: f64| (1..6).map(|x| (f64::from(x), 3.0 * f64::from(x).powf(power))).collect::<Vec<_>>();
        for power in [0.5, 1.0, 2.0] {
            assert!((slope(&points(power)).expect("five points") - power).abs() < 1e-9);
        }
        assert_eq!(slope(&points(1.0)[..1]), None);
    }

    #[test]
    fn decades_hold_all_values() {
        assert_eq!(decades([3.0, 250.0].into_iter()), 1.0..1000.0);
        assert_eq!(decades([0.02].into_iter()), 0.01..0.1);
    }
}
